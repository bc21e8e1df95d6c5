"""ONNX nodes that move or resize, as functions."""

import numpy as np
import pytest

from pydtconv import config, saving
from tests.interchange.onnx_files import inner, load, made, node, normal, vector


def test_flatten_keeps_the_order_of_the_file(tmp_path):
    config.set_image_data_format("channels_first")
    try:
        model = load(tmp_path, [node("Flatten")], shape=("n", 2, 3, 4))
        x = normal(2, 2, 3, 4)
        np.testing.assert_array_equal(model(x), x.reshape(2, 24))
    finally:
        config.set_image_data_format("channels_last")


def test_pixels_repeated_not_quite_twice(tmp_path):
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    scales = vector("s", np.array([1, 1, 1, 2.05], "float32"))
    model = load(tmp_path, [node("Resize", ["x", "", "s"], **how)], [scales], shape=("n", 1, 1, 10))
    x = normal(2, 1, 1, 10)
    np.testing.assert_array_equal(model(x), x[..., np.floor(np.arange(20) / 2.05).astype(int)])


PLACES = ("half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric", "pytorch_half_pixel")
NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", ["linear", "cubic", *NEAREST])
def test_resizing_by_scales_beside_onnxruntime(tmp_path, place, how):
    """By scales that give extents which are not whole; even ones of odd ones, or rounding decides about the middle."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    settings = {"mode": how} if how not in NEAREST else {"mode": "nearest", "nearest_mode": how}
    x = normal(1, 1, 7, 9)
    for down, across in ((1.55, 0.93), (0.5, 1.13), (0.75, 0.71)):
        scales = vector("s", np.array([1, 1, down, across], "float32"))
        nodes = [node("Resize", ["x", "", "s"], coordinate_transformation_mode=place, **settings)]
        file = made(nodes, [scales], shape=(1, 1, 7, 9)).SerializeToString()
        (want,) = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": x})
        (tmp_path / "net.onnx").write_bytes(file)
        np.testing.assert_allclose(saving.load_onnx(tmp_path / "net.onnx")(x), want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("rows", ["n", 2])
def test_rows_of_samples_are_put_back_into_samples(rows, tmp_path):
    """36 means for each sample: those of one sample, and not all, are a row of the result."""
    nodes = [
        inner("Reshape", ["x", "flat"], ["a"]),
        inner("ReduceMean", ["a", "last"], ["b"], keepdims=0),
        inner("Shape", ["x"], ["c"], end=1),
        inner("Concat", ["c", "rest"], ["d"], axis=0),
        node("Reshape", ["b", "d"]),
    ]
    constants = [vector("flat", [-1, 8]), vector("last", [1]), vector("rest", [-1])]
    path, x = tmp_path / "net.onnx", normal(3, 4, 9, 8)
    path.write_bytes(made(nodes, constants, shape=(rows, 4, 9, 8)).SerializeToString())
    model = saving.load_onnx(path, free_batch=True)
    np.testing.assert_allclose(model.predict(x, verbose=0), x.mean(-1).reshape(3, 36), atol=1e-6)


@pytest.mark.parametrize("diagonal", [None, 1])
def test_a_triangle_of_constants(diagonal, tmp_path):
    """As PyTorch writes the mask of causal attention."""
    nodes = [
        inner("Trilu", ["ones"] if diagonal is None else ["ones", "k"], ["t"], upper=0),
        node("MatMul", ["x", "t"]),
    ]
    constants = [vector("ones", np.ones((4, 4), "float32")), vector("k", np.array(1))]
    x = normal(2, 4)
    found = load(tmp_path, nodes, constants)(x)
    np.testing.assert_allclose(found, x @ np.tril(np.ones((4, 4)), diagonal or 0), atol=1e-6)
