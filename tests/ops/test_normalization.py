"""Batch normalization: values and gradients, moving averages, precision, the seam for several processes."""

import numpy as np
import pytest

from pydtconv.kernels import Pass, RunState, compute, find, scratch
from pydtconv.ops import BatchNorm
from pydtconv.ops.base import Spec
from tests.ops.harness import check_op, normal
from tests.reference import normalization as reference

SHAPES = [(7, 1), (9, 3), (2, 5, 3, 17), (3, 4, 4, 64), (2, 3, 2, 300), (2, 7)]


def parameters(c):
    """gamma, beta, moving_mean, moving_variance."""
    return normal(c, seed=2), normal(c, seed=3), normal(c, seed=4), np.abs(normal(c, seed=5)) * 2


@pytest.mark.parametrize(
    ("shape", "activation"),
    # finite differences across the kink of ReLU limit it to few elements
    [
        (shape, activation)
        for shape in SHAPES
        for activation in (None, "relu", "sigmoid")
        if activation != "relu" or np.prod(shape) < 600
    ],
)
def test_training(shape, activation):
    gamma, beta, mean, variance = parameters(shape[-1])
    x = 2 * normal(*shape)
    result = check_op(
        BatchNorm(activation=activation),
        x,
        gamma,
        beta,
        mean,
        variance,
        reference=lambda x, g, b, m, v: reference.batch_norm(x, g, b, *reference.moments(x), activation=activation),
        rtol=1e-4 if shape[0] == 2 else 2e-5,
    )
    batch_mean, batch_variance = reference.moments(x)
    np.testing.assert_allclose(result.x[3], mean * 0.99 + batch_mean * 0.01, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(result.x[4], variance * 0.99 + batch_variance * 0.01, rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "relu6", "leaky_relu", "sigmoid", "tanh", "silu", "hard_silu"])
@pytest.mark.parametrize("frozen", [False, True])
def test_activations(activation, frozen):
    check_op(
        BatchNorm(activation=activation, alpha=0.25, frozen=frozen, epsilon=1e-5),
        3 * normal(3, 5, 2, 19),
        *parameters(19),
        reference=lambda x, g, b, m, v: reference.batch_norm(
            x, g, b, *((m, v) if frozen else reference.moments(x)), 1e-5, activation, 0.25
        ),
    )


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_without_gamma_or_beta(scale, center):
    gamma, beta, mean, variance = parameters(5)
    op = BatchNorm(scale=scale, center=center, activation="relu")
    arrays = [normal(4, 3, 3, 5), *[gamma] * scale, *[beta] * center, mean, variance]
    one, zero = np.ones(5), np.zeros(5)

    def expected(x, *rest):
        return reference.batch_norm(
            x, gamma if scale else one, beta if center else zero, *reference.moments(x), activation="relu"
        )

    result = check_op(op, *arrays, reference=expected)
    assert (result.x[op.updates[0]] != mean).all()


def test_inference_reads_the_moving_statistics():
    x, gamma, beta, mean, variance = normal(2, 3, 3, 8), *parameters(8)
    result = check_op(
        BatchNorm(activation="relu6"),
        x,
        gamma,
        beta,
        mean,
        variance,
        training=False,
        needs=[False] * 5,
        reference=lambda *a: reference.batch_norm(*a, activation="relu6"),
    )
    np.testing.assert_array_equal(result.x[3], mean)


@pytest.mark.parametrize(
    ("activation", "rtol"),
    [
        ("relu", 5e-3),
        *(pytest.param(name, 1e-5, marks=pytest.mark.slow) for name in (None, "tanh")),
    ],
)
def test_many_rows_on_several_threads(activation, rtol):
    """Large enough for several chunks, blocks and threads."""
    check_op(
        BatchNorm(activation=activation),
        normal(8, 33, 31, 24),
        *parameters(24),
        reference=lambda x, g, b, m, v: reference.batch_norm(x, g, b, *reference.moments(x), activation=activation),
        rtol_gradient=rtol,
    )


@pytest.mark.parametrize("offset", [1e3, -1e4])
def test_statistics_far_from_zero(offset):
    """The variance of values whose mean is much larger than their spread, in float32."""
    x = (np.random.default_rng(1).standard_normal((20000, 3)) + offset).astype("float32")
    ones, zeros = np.ones(3, "float32"), np.zeros(3, "float32")
    moving_mean, moving_variance = zeros.copy(), zeros.copy()
    compute(BatchNorm(momentum=0.0), x, ones, zeros, moving_mean, moving_variance, training=True)
    mean, variance = reference.moments(x.astype("float64"))
    np.testing.assert_allclose(moving_mean, mean, rtol=1e-7)
    np.testing.assert_allclose(moving_variance, variance, rtol=1e-5)


class Halves:
    """Stands for two processes: merges the statistics of this half with those of the other."""

    def __init__(self, other):
        self.other = other

    def moments(self, mean, variance, rows):
        other_mean, other_variance = reference.moments(self.other)
        both = (mean + other_mean) / 2
        variance[...] = (variance + other_variance) / 2 + (mean - both) ** 2 / 2 + (other_mean - both) ** 2 / 2
        mean[...] = both
        return 2 * rows

    def sums(self, sum_dy, sum_dy_xhat, rows):
        sum_dy += self.sum_dy
        sum_dy_xhat += self.sum_dy_xhat
        return 2 * rows


def test_synchronized_halves_equal_the_whole():
    x, dy = normal(8, 3, 3, 5, seed=8) + 1, normal(8, 3, 3, 5, seed=9)
    gamma, beta, mean, variance = parameters(5)

    def run(op, x, dy, state=None):
        state = state or RunState()
        specs = [Spec(a.shape, "float64") for a in (x, gamma, beta, mean, variance)]
        saved = {key: np.empty(spec.shape) for key, spec in op.saves(*specs, training=True).items()}
        y, dx = np.empty_like(x), [np.empty_like(x), np.empty(5), np.empty(5), None, None]
        arrays = [x, gamma, beta, mean.copy(), variance.copy()]
        kernel = find(op, "cpu", "float64")
        work = scratch(max(kernel.workspace(d, *specs) for d in ("forward", "backward")))
        more = {"saved": saved, "workspace": work, "training": True, "run": state}
        kernel.forward(Pass(x=arrays, y=[y], **more))()
        kernel.backward(Pass(x=arrays, y=[None], dy=[dy], dx=dx, **more))()
        return y, dx, saved

    y, dx, saved = run(BatchNorm(), x, dy)
    halves = Halves(x[4:])
    xhat = (x - saved["mean"]) * saved["inverse"]
    halves.sum_dy, halves.sum_dy_xhat = dy[4:].sum((0, 1, 2)), (dy * xhat)[4:].sum((0, 1, 2))
    y_half, dx_half, _ = run(BatchNorm(synchronized=True), x[:4], dy[:4], RunState(synchronizer=halves))
    np.testing.assert_allclose(y_half, y[:4], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dx_half[0], dx[0][:4], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dx_half[1], (dy * xhat)[:4].sum((0, 1, 2)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((normal(2, 3), normal(3)), "expected the inputs x, gamma, beta, moving_mean, moving_variance"),
        ((normal(2, 3), normal(4), *[normal(3)] * 3), r"gamma must have shape \(3,\)"),
        ((np.ones((2, 3), int), *[normal(3)] * 4), "x: expected a floating dtype, got int64"),
    ],
)
def test_errors(arrays, message):
    with pytest.raises(ValueError, match=message):
        BatchNorm()(*arrays)


def test_unknown_activation():
    with pytest.raises(ValueError, match="'gelu'"):
        BatchNorm(activation="gelu")(normal(2, 3), *parameters(3))


@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_results_past_the_caches_are_the_same(dtype, activation):
    """Large results at aligned addresses are written by other instructions than those at odd ones."""
    shape = (70_000, 64)
    x = normal(*shape, seed=1).astype(dtype)
    rest = [value.astype(dtype) for value in parameters(64)]
    op = BatchNorm(activation=activation, frozen=True)
    expected = reference.batch_norm(x, *rest[:2], rest[2], rest[3], activation=activation)
    size = x.nbytes
    for start in (0, 16):
        y = scratch(size + 64)[start : start + size].view(dtype).reshape(shape)
        saved = {key: np.empty(64, dtype) for key in op.saves(Spec(shape, dtype), training=True)}
        kernel = find(op, "cpu", dtype)
        workspace = scratch(kernel.workspace("forward", Spec(shape, dtype)))
        kernel.forward(Pass(x=[x, *rest], y=[y], saved=saved, workspace=workspace, training=True))()
        np.testing.assert_allclose(y, expected, rtol=2e-5, atol=1e-5)
