"""`saving.load_onnx`: nodes whose numbers depend on more than their weights, and constants without an end."""

import numpy as np
import pytest

from pydtconv import config, saving
from tests.interchange.test_onnx_import import made, node, vector

onnx = pytest.importorskip("onnx", reason="needs onnx")


def inner(kind, inputs, outputs, **attributes):
    return onnx.helper.make_node(kind, inputs, outputs, **attributes)


def load(tmp_path, *arguments, **options):
    path = tmp_path / "net.onnx"
    path.write_bytes(made(*arguments, **options).SerializeToString())
    return saving.load_onnx(path)


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


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


def test_a_column_that_a_product_adds_to_its_rows(tmp_path):
    b, c, x = normal(4, 3), normal(3, 1), normal(3, 4)
    model = load(tmp_path, [node("Gemm", ["x", "b", "c"])], [vector("b", b), vector("c", c)], shape=(3, 4))
    np.testing.assert_allclose(model(x), x @ b + c, atol=1e-5)


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


def test_slopes_of_channels_in_old_files(tmp_path):
    slope, x = normal(4), normal(2, 4, 3, 4)
    model = load(tmp_path, [node("PRelu", ["x", "s"])], [vector("s", slope)], shape=("n", 4, 3, 4), opset=6)
    np.testing.assert_allclose(model(x), np.where(x < 0, x * slope[:, None, None], x), atol=1e-6)


def of_batch(*between):
    """x divided by what some nodes make of its batch."""
    steps = [("Shape", ["x"]), ("Gather", ["n0", "zero"]), ("Cast", ["n1"]), *between]
    nodes = [
        inner(kind, inputs, [f"n{i}"], **({"to": 1} if kind == "Cast" else {}))
        for i, (kind, inputs) in enumerate(steps)
    ]
    return made([*nodes, node("Div", ["x", f"n{len(steps) - 1}"])], [vector("zero", 0), vector("axes", [0])])


BOMB = [vector("c", np.ones(1 << 10, "float32")), vector("n", [1 << 24]), vector("wide", [1 << 26, 1, 4])]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (of_batch, r"Div .*: 'n2': expected numbers that are known, got ones that follow the batch"),
        (lambda: of_batch(("Sqrt", ["n2"]), ("Unsqueeze", ["n3", "axes"])), r"Div .*: 'n4': expected numbers that are"),
        (
            lambda: made([inner("Relu", ["x"], ["h"]), inner("Neg", ["x"], ["h"]), node("Relu", ["h"])]),
            r"Neg .*: output 'h' is made by a node before it",
        ),
        (
            lambda: made(
                [onnx.helper.make_node("BatchNormalization", ["x", *"ssss"], ["y", *"abcd"])],
                [vector("s", np.ones(4, "float32"))],
                opset=9,
            ),
            r"BatchNormalization .*: training_mode: expected one output",
        ),
        (
            lambda: made(
                [inner("Concat", [f"c{i}" if i else "c"] * 16, [f"c{i + 1}"], axis=0) for i in range(5)]
                + [node("Add", ["x", "c5"])],
                BOMB,
            ),
            r"Concat .*: expected a constant of \d+ bytes at most",
        ),
        (
            lambda: made([inner("ConstantOfShape", ["n"], [f"c{i}"]) for i in range(2)], BOMB),
            r"ConstantOfShape .*'c1'.*: expected a constant of \d+ bytes at most",
        ),
        (
            lambda: made(
                [
                    inner("Reshape", ["c", "row"], ["r"]),
                    inner("Expand", ["zero", "places"], ["i"]),
                    node("Gather", ["r", "i"], axis=-1),
                ],
                [*BOMB, vector("row", [1 << 10, 1]), vector("zero", [0]), vector("places", [1 << 15])],
            ),
            r"Gather .*: expected a constant of \d+ bytes at most",
        ),
        (lambda: made([node("Expand", ["x", "wide"])], BOMB), r"Expand .*: expected a constant of \d+ bytes at most"),
        (
            lambda: made([node("Pad", ["x", "p"], mode="edge")], [vector("p", [0, 0, 0, 1 << 24])]),
            r"Pad .*: expected a constant of \d+ bytes at most",
        ),
        (
            lambda: made([node("OneHot", ["x", "n", "v"])], [*BOMB, vector("v", [0.0, 1.0])]),
            r"OneHot .*: expected a constant of \d+ bytes at most",
        ),
        (
            lambda: made([node("Resize", ["x", "", "s"], mode="linear")], [vector("s", np.float32([1, 1 << 22]))]),
            r"Resize .*: expected a constant of \d+ bytes at most",
        ),
        (
            lambda: made([node("LRN", size=1 << 12)], shape=("n", 2048, 1)),
            r"LRN .*: size: expected 1 to 1024, got 4096",
        ),
    ],
)
def test_refusals(build, message, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(build().SerializeToString())
    with pytest.raises(ValueError, match=message):
        saving.load_onnx(path)


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
