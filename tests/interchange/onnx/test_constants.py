"""`saving.load_onnx`: nodes whose numbers depend on more than their weights, and constants without an end."""

import numpy as np
import pytest

from pydtconv import saving
from tests.interchange.onnx_files import inner, made, node, onnx, vector


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
