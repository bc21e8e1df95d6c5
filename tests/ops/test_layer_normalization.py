"""Layer normalization: axes, parameters, precision."""

import numpy as np
import pytest

from pydtconv.kernels import compute
from pydtconv.ops import LayerNorm
from tests.ops.harness import check_op, normal
from tests.reference import normalization as reference

CASES = [
    ((6, 2), -1),
    ((5, 17), -1),
    ((2, 3, 4, 5), -1),
    ((2, 3, 4, 5), (-2, -1)),
    ((2, 3, 4, 5), (1, 2, 3)),
    ((9, 33), 1),
]


@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_layer_norm(shape, axis, scale, center):
    axes = (axis,) if isinstance(axis, int) else axis
    inner = tuple(shape[a] for a in axes)
    gamma, beta = normal(*inner, seed=2), normal(*inner, seed=3)

    def expected(x, *rest):
        return reference.layer_norm(x, gamma if scale else 1.0, beta if center else 0.0, axes)

    arrays = [2 * normal(*shape), *[gamma] * scale, *[beta] * center]
    check_op(LayerNorm(axis, scale=scale, center=center), *arrays, reference=expected, rtol=2e-4)


def test_by_the_root_mean_square():
    def expected(x, gamma):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma

    check_op(LayerNorm(-1, 1e-6, center=False, rms=True), normal(19, 33), normal(33, seed=2), reference=expected)


def test_several_threads():
    check_op(LayerNorm(), normal(700, 96), normal(96, seed=2), normal(96, seed=3), rtol_gradient=1e-5)


def test_far_from_zero():
    x = (np.random.default_rng(1).standard_normal((3, 5000)) + 1e4).astype("float32")
    y = compute(LayerNorm(scale=False, center=False, epsilon=0.0), x)
    want = reference.layer_norm(x.astype("float64"), 1.0, 0.0, (1,), 0.0)
    np.testing.assert_allclose(y, want, atol=2e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LayerNorm(1)(normal(2, 3, 4), normal(3), normal(3)), "last axis or axes"),
        (lambda: LayerNorm()(normal(2, 3), normal(2), normal(3)), r"gamma must have shape \(3,\)"),
        (lambda: LayerNorm()(normal(2, 3)), "expected the inputs x, gamma, beta"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
