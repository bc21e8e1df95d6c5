"""How many places a new thing takes: CONTRIBUTING says it, and the files that name one that is there show it."""

import re
from pathlib import Path

import numpy as np
import pytest

from pydtconv import GradientTape, Model, layers, ops
from pydtconv.graph.spatial.rules import RULES
from pydtconv.kernels.base import Kernel
from pydtconv.kernels.registry import kernels, register
from pydtconv.ops import Op

ROOT = Path(__file__).parent.parent
#: what uses operators and functions, and does not make them
USERS = ("pydtconv/compat/", "pydtconv/layers/", "pydtconv/random.py")
#: by the row of CONTRIBUTING: what names one that is there, and the files that do
EXAMPLES = {
    "a convolution algorithm": (
        r"(?-i:\brdx\b)",
        [
            "cext/conv/rdx.c",
            "cext/include/dtconv_conv.h",
            "pydtconv/conv/estimates.py",
            "pydtconv/conv/selection.py",
            "pydtconv/conv/algorithms.py",
        ],
    ),
    "a function in NumPy": (r"\bnextafter\b", ["pydtconv/ops/functions/tables/elementwise.py"]),
    "an operator with C and CUDA": (
        r"gaussian_?noise",
        [
            "cext/cuda/random.cu",
            "cext/include/dtconv_any.h",
            "cext/include/dtconv_nn_elem.h",
            "cext/nn/random.c",
            "pydtconv/_ext/elem.pyx",
            "pydtconv/kernels/cpu/random.py",
            "pydtconv/kernels/gpu/random.py",
            "pydtconv/ops/random.py",
        ],
    ),
    "an activation": (
        r"\bsparse_plus\b",
        [
            "cext/cuda/activations.h",
            "pydtconv/activations.py",
            "pydtconv/ops/functions/activation.py",
            "pydtconv/ops/kinds.py",
        ],
    ),
    "a loss": (
        r"squared_?hinge",
        [
            "cext/cuda/elementwise_losses.h",
            "pydtconv/losses/regression.py",
            "pydtconv/metrics/functions.py",
            "pydtconv/metrics/means.py",
            "pydtconv/ops/elementwise_loss.py",
        ],
    ),
    "an optimizer": (r"\bmuon\b", ["pydtconv/optimizers/__init__.py", "pydtconv/optimizers/muon.py"]),
    "an optimizer with C and CUDA": (
        r"\blion\b",
        [
            "cext/cuda/optimizers.cu",
            "cext/include/dtconv_any.h",
            "cext/include/dtconv_optimizers.h",
            "cext/nn/optimizers.c",
            "pydtconv/_ext/optimizers.pyx",
            "pydtconv/devices/updates.py",
            "pydtconv/optimizers/__init__.py",
            "pydtconv/optimizers/kernels.py",
            "pydtconv/optimizers/lion.py",
        ],
    ),
}


@pytest.fixture(scope="module")
def texts():
    if not (ROOT / "cext").exists():
        pytest.skip("needs the sources of a checkout")
    kinds = {"cext": ("*.c", "*.h", "*.cu"), "pydtconv": ("*.py", "*.pyx")}
    files = [path for room, patterns in kinds.items() for pattern in patterns for path in (ROOT / room).rglob(pattern)]
    names = {path.relative_to(ROOT).as_posix(): path for path in files}
    return {name: path.read_text() for name, path in names.items() if not name.startswith(USERS)}


@pytest.mark.parametrize("what", EXAMPLES)
def test_a_new_thing_takes_as_many_places_as_contributing_says(what, texts):
    pattern, places = EXAMPLES[what]
    found = sorted(name for name, text in texts.items() if re.search(pattern, text, re.IGNORECASE))
    assert found == sorted(places)
    row = re.search(rf"^\| {re.escape(what)} \| (\d+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert int(row[1]) == len(places)


def test_an_operator_is_a_declaration_and_a_kernel(tmp_path):
    """With them alone it is applied, trained, differentiated twice, cut, and written as ONNX."""
    onnx = pytest.importorskip("onnx")

    class Squash(Op):
        mesh = "elementwise"
        onnx = "Softsign"

        def infer(self, *inputs):
            return inputs[0]

        def retains(self, needs):
            return ops.Retained(x=(0,))

        def formula(self, x):
            return x / (1.0 + ops.abs(x))

    class SquashKernel(Kernel):
        def forward(self, p):
            return lambda: np.divide(p.x[0], 1 + np.abs(p.x[0]), out=p.y[0])

        def backward(self, p):
            return lambda: np.divide(p.dy[0], np.square(1 + np.abs(p.x[0])), out=p.dx[0])

    register(Squash)(SquashKernel)
    try:
        x = np.array([[-3.0, 0.5, 1.0]])
        assert np.allclose(Squash()(x), x / (1 + np.abs(x)))
        with GradientTape() as outer:
            outer.watch(x)
            with GradientTape() as inner:
                inner.watch(x)
                y = Squash()(x)
            slope = inner.gradient(y, x)
        curve = outer.gradient(slope, x)
        assert np.allclose(slope.numpy(), (1 + np.abs(x)) ** -2.0)
        assert np.allclose(curve.numpy(), -2 * np.sign(x) * (1 + np.abs(x)) ** -3.0)
        assert Squash.mesh in RULES
        inputs = layers.Input((3,))
        model = Model(inputs, layers.Dense(1)(Squash()(layers.Dense(4)(inputs))))
        model.compile("sgd", "mse")
        losses = model.fit(x, np.ones((1, 1)), epochs=5, verbose=0).history["loss"]
        assert losses[-1] < losses[0]
        model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
        assert "Softsign" in [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    finally:
        for key in [key for key in kernels if key[0] is Squash]:
            del kernels[key]
