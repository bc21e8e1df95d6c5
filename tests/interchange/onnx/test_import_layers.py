"""ONNX nodes with weights or windows as layers."""

import numpy as np
import pytest

from pydtconv import saving
from tests.interchange.onnx_files import inner, load, loaded_and_expected, node, normal, onnx, vector


@pytest.mark.parametrize(("kind", "counted"), [("AveragePool", 0), ("AveragePool", 1), ("MaxPool", None)])
def test_windows_of_pooling_that_reach_beyond_the_padding(kind, counted, tmp_path):
    """ceil_mode: what lies beyond the padding never counts, the padding where count_include_pad says so."""
    rng = np.random.default_rng(0)
    for extent, size, stride, before, after in (
        (7, 3, 2, 0, 0),
        (8, 3, 2, 0, 0),
        (8, 3, 2, 1, 0),
        (9, 4, 3, 1, 1),
        (6, 2, 3, 0, 1),
    ):
        attributes = {"kernel_shape": [size], "strides": [stride], "pads": [before, after], "ceil_mode": 1}
        if counted is not None:
            attributes["count_include_pad"] = counted
        info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 2, None]) for name in "xy"]
        info[0].type.tensor_type.shape.dim[2].dim_value = extent
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node(kind, ["x"], ["y"], **attributes)], "pool", *([i] for i in info)
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
        (tmp_path / "pool.onnx").write_bytes(model.SerializeToString())
        x = rng.normal(size=(1, 2, extent)).astype("float32")
        want = []
        start = -before
        while start < extent and (start + size <= extent + after or start > -before or not want):
            inside = x[..., max(start, 0) : min(start + size, extent)]
            padded = min(start + size, extent + after) - start
            want.append(
                inside.max(-1) if kind == "MaxPool" else inside.sum(-1) / (padded if counted else inside.shape[-1])
            )
            if start + size >= extent + after:
                break
            start += stride
        found = np.asarray(saving.load_onnx(tmp_path / "pool.onnx")(x))
        np.testing.assert_allclose(found, np.stack(want, -1), rtol=1e-6)


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize(("strides", "dilations"), [([2, 2], [2, 2]), ([3, 1], [1, 2]), ([2, 3], [3, 2])])
def test_convolutions_of_strides_and_dilations(kind, strides, dilations, tmp_path):
    x, w, b = normal(1, 3, 11, 12), normal(3, 3, 3, 2), normal(3)
    attributes = {"strides": strides, "dilations": dilations, "pads": [1, 0, 2, 1]}
    if kind == "ConvTranspose":
        attributes["output_padding"] = [stride - 1 for stride in strides]
    found, expected = loaded_and_expected(tmp_path / "net.onnx", kind, {"w": w, "b": b}, x, **attributes)
    np.testing.assert_allclose(found, expected(), atol=1e-4)


def test_means_of_padding_alone_are_zero(tmp_path):
    attributes = {"kernel_shape": [2, 2], "dilations": [4, 4], "pads": [1, 1, 1, 1]}
    found, _ = loaded_and_expected(tmp_path / "net.onnx", "AveragePool", {}, normal(1, 2, 3, 3), 19, **attributes)
    np.testing.assert_array_equal(found, np.zeros((1, 2, 1, 1)))


def test_a_filter_that_images_of_two_sizes_share(tmp_path):
    """The same padding is Keras's "same" for 9 pixels, and is not for 8."""
    window = {"pads": [1, 1], "strides": [2]}
    nodes = [
        inner("Slice", ["x", "from", "to", "axes"], ["short"]),
        inner("Conv", ["x", "w"], ["a"], **window),
        inner("Conv", ["short", "w"], ["b"], **window),
        node("Concat", ["a", "b"], axis=2),
    ]
    w, x = normal(1, 1, 3), normal(2, 1, 9)
    constants = [vector("w", w), vector("from", [0]), vector("to", [8]), vector("axes", [2])]
    model = load(tmp_path, nodes, constants, shape=("n", 1, 9))
    padded = [np.pad(x[:, 0, :size], ((0, 0), (1, 1))) for size in (9, 8)]
    expected = [
        p[:, i : i + 3] @ w[0, 0] for p, places in zip(padded, (5, 4), strict=True) for i in range(0, 2 * places, 2)
    ]
    np.testing.assert_allclose(model(x)[:, 0], np.stack(expected, 1), atol=1e-5)
    assert sum(len(layer.weights) for layer in model.layers) == 2  # two layers, as one has one padding


def test_slopes_of_channels_in_old_files(tmp_path):
    slope, x = normal(4), normal(2, 4, 3, 4)
    model = load(tmp_path, [node("PRelu", ["x", "s"])], [vector("s", slope)], shape=("n", 4, 3, 4), opset=6)
    np.testing.assert_allclose(model(x), np.where(x < 0, x * slope[:, None, None], x), atol=1e-6)
