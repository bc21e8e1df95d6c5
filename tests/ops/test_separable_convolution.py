"""SeparableConv: reference, gradients, moments, errors; strips that are cut, chunks of channels, borders."""

import numpy as np
import pytest

from pydtconv.conv.problem import same_padding
from pydtconv.ops import BatchNorm
from pydtconv.ops.base import Cost, Retained, Spec
from pydtconv.ops.separable_convolution import SeparableConv
from tests.ops.harness import check_op, normal
from tests.ops.runner import Options, run_op
from tests.reference import conv as reference
from tests.reference import normalization

SIDES = ((1, 0), (2, 1))


def both(strides=1, padding=None, dilation=1):
    """The two convolutions, one after the other."""

    def forward(x, d, w, *bias):
        deep = d.reshape(*d.shape[:-2], 1, -1)
        t = reference.forward(x, deep, strides, padding, dilation, x.shape[-1])
        return reference.forward(t, w, bias=bias[0] if bias else None)

    return forward


@pytest.mark.parametrize(
    ("op", "x", "d", "w", "settings"),
    [
        (SeparableConv(), (2, 5, 6, 7), (3, 3, 7, 1), (1, 1, 7, 9), {}),
        (SeparableConv((2, 1), SIDES, (1, 2)), (2, 7, 6, 3), (3, 2, 3, 2), (1, 1, 6, 5), (2, 1)),
        (SeparableConv(2), (2, 9, 4), (3, 4, 1), (1, 4, 3), (2,)),
        (SeparableConv(1, ((1, 1), (0, 1), (1, 0))), (1, 3, 4, 5, 2), (2, 2, 3, 2, 1), (1, 1, 1, 2, 3), (1, 1, 1)),
    ],
    ids=["two axes", "multiplier, strides, dilation", "one axis", "three axes"],
)
def test_against_the_reference(op, x, d, w, settings):
    padding, dilation = op.padding if op.padding != "valid" else None, op.dilation
    check_op(
        op,
        normal(*x),
        normal(*d, seed=2),
        normal(*w, seed=3),
        normal(w[-1], seed=4),
        reference=both(settings or 1, padding, dilation),
    )


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_fused_activation_and_residual(activation):
    arrays = normal(1, 4, 5, 3), normal(3, 3, 3, 1, seed=2), normal(1, 1, 3, 5, seed=3), normal(1, 4, 5, 5, seed=4)
    check_op(SeparableConv(1, "same", activation=activation, residual=True), *arrays)


def test_moments():
    def forward(x, d, w):
        y = both(padding=((1, 1), (1, 1)))(x, d, w)
        return y, np.stack([y.mean(axis=(0, 1, 2)), y.var(axis=(0, 1, 2))])[:, None, None]

    arrays = normal(2, 5, 4, 3), normal(3, 3, 3, 1, seed=2), normal(1, 1, 3, 4, seed=3)
    check_op(SeparableConv(1, "same", moments=True), *arrays, reference=forward)


def normalized(op):
    """Both convolutions, with the normalization between them by the statistics that are given."""
    between = op.between

    def forward(x, d, w, *rest):
        deep = d.reshape(*d.shape[:-2], 1, -1)
        padding = [same_padding(n, k, s, 1) for n, k, s in zip(x.shape[1:-1], d.shape[:-2], op.strides, strict=True)]
        t = reference.forward(x, deep, op.strides, padding, 1, x.shape[-1])
        count, one = between.state[1], np.ones(t.shape[-1])
        parameters = list(rest[:count])
        gamma = parameters.pop(0) if between.scale else one
        beta = parameters.pop(0) if between.center else 0 * one
        z = normalization.batch_norm(t, gamma, beta, *parameters, between.epsilon, between.activation)
        return reference.forward(z, w, bias=rest[count] if len(rest) > count else None)

    return forward


def between(c):
    """gamma, beta, moving mean and variance."""
    return normal(c, seed=5), normal(c, seed=6), normal(c, seed=7), np.abs(normal(c, seed=8)) * 2


@pytest.mark.parametrize("activation", [None, "relu", "relu6", "silu", "hard_silu"])
def test_normalization_between(activation):
    op = SeparableConv((2, 1), "same", between=BatchNorm(activation=activation, frozen=True))
    arrays = [normal(2, 7, 6, 3), normal(3, 3, 3, 2, seed=2), normal(1, 1, 6, 5, seed=3), *between(6)]
    check_op(op, *arrays, reference=normalized(op), needs=[False] * 7, rtol=1e-4)


@pytest.mark.parametrize("scale", [False, True])
def test_normalization_between_with_a_bias(scale):
    between_them = BatchNorm(activation="relu6", frozen=True, scale=scale, center=scale)
    op = SeparableConv((1, 1), "same", between=between_them)
    arrays = [normal(2, 5, 6, 3), normal(3, 3, 3, 1, seed=2), normal(1, 1, 3, 5, seed=3)]
    arrays += [*between(3)[0 if scale else 2 :], normal(5, seed=4)]
    check_op(op, *arrays, reference=normalized(op), needs=[False] * len(arrays))


def test_normalization_between_with_all_that_follows():
    """A normalization of the results, too, a residual and an activation."""
    one, two = BatchNorm(activation="relu", frozen=True), BatchNorm(frozen=True)
    op = SeparableConv((1, 1), "same", activation="relu", residual=True, between=one, normalization=two)
    arrays = [normal(1, 4, 5, 3), normal(3, 3, 3, 1, seed=2), normal(1, 1, 3, 6, seed=3), *between(3)]

    def expected(*given):
        y = normalized(op)(*given[:7])
        return np.maximum(normalization.batch_norm(y, *given[7:11], two.epsilon) + given[11], 0)

    arrays += [*(2 * each for each in between(6)), normal(1, 4, 5, 6, seed=4)]
    check_op(op, *arrays, reference=expected, needs=[False] * 12, rtol=1e-4)


#: images of several strips, rows of more pixels than a piece, several chunks and parts of channels, many blocks of co
SIZES = {
    "strips": ((3, 37, 15, 33), 2, 37, 1),
    "long rows": ((1, 3, 331, 17), 1, 35, 1),
    "chunks": ((1, 9, 40, 530), 1, 18, 1),
    "blocks": ((2, 7, 7, 150), 2, 777, 2),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_are_cut(name):
    """Against float64 NumPy; moments and gradients have the bits of one thread on two, too."""
    shape, mult, co, stride = SIZES[name]
    x, d = normal(*shape).astype("float32"), normal(3, 3, shape[-1], mult, seed=2).astype("float32")
    w = normal(1, 1, shape[-1] * mult, co, seed=3).astype("float32")
    op = SeparableConv(stride, "same", moments=True)
    y_spec, m_spec = op.infer(*(Spec(a.shape) for a in (x, d, w)))
    dys = [normal(*y_spec.shape, seed=4).astype("float32"), np.zeros(m_spec.shape, "float32")]
    one, two = (run_op(op, [x, d, w], dys, [True] * 3, Options(dtype="float32", threads=n)) for n in (1, 2))
    for a, b in zip([*one.y, *one.dx], [*two.y, *two.dx], strict=True):
        assert a.tobytes() == b.tobytes()
    wide = [a.astype("float64") for a in (x, d, w)]
    padding = same_padding(shape[1], 3, stride, 1), same_padding(shape[2], 3, stride, 1)
    t = reference.forward(wide[0], wide[1].reshape(3, 3, 1, -1), stride, padding, 1, shape[-1])
    rows, dy = t.reshape(-1, t.shape[-1]), dys[0].astype("float64").reshape(-1, co)
    y = rows @ wide[2][0, 0]
    dt = (dy @ wide[2][0, 0].T).reshape(t.shape)
    dd = reference.backward_weights(wide[0], dt, (3, 3, 1, t.shape[-1]), stride, padding, 1, shape[-1])
    dx = reference.backward_data(dt, wide[1].reshape(3, 3, 1, -1), shape, stride, padding, 1, shape[-1])
    expected = [y, np.stack([y.mean(0), y.var(0)]), dx, dd, rows.T @ dy]
    for found, right in zip([*one.y, *one.dx], expected, strict=True):
        assert np.abs(found.reshape(right.shape) - right).max() <= 3e-6 * np.abs(right).max()


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_are_cut_with_a_normalization(name):
    """Against float64 NumPy; the same bits on one thread and on two."""
    shape, mult, co, stride = SIZES[name]
    op = SeparableConv((stride, stride), "same", between=BatchNorm(activation="relu6", frozen=True))
    arrays = [normal(*shape), normal(3, 3, shape[-1], mult, seed=2), normal(1, 1, shape[-1] * mult, co, seed=3)]
    arrays += between(shape[-1] * mult)
    one, two = (run_op(op, arrays, [], [False] * 7, Options(dtype="float32", threads=n)).y[0] for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    right = normalized(op)(*arrays)
    assert np.abs(one - right).max() <= 3e-6 * np.abs(right).max()


def test_it_has_no_gradient_through_a_normalization():
    op = SeparableConv(1, "same", between=BatchNorm(frozen=True))
    arrays = [normal(1, 3, 3, 2), normal(3, 3, 2, 1, seed=2), normal(1, 1, 2, 3, seed=3), *between(2)]
    with pytest.raises(NotImplementedError, match="has no gradient: plans make it for predictions alone"):
        run_op(op, arrays, [normal(1, 3, 3, 3)], [True] + [False] * 6, Options())


def test_what_it_retains():
    op = SeparableConv(activation="relu")
    assert op.retains((True, True, True)) == Retained(x=(0, 1, 2), y=(0,))
    assert op.retains((True, False, False)) == Retained(x=(1, 2), y=(0,))
    assert op.retains((False, False, True)) == Retained(x=(0, 1), y=(0,))
    assert op.retains((False, True, False)) == Retained(x=(0, 2), y=(0,))


def test_costs():
    specs = Spec((2, 4, 4, 3)), Spec((3, 3, 3, 1)), Spec((1, 1, 3, 5))
    deep, point = 2 * 32 * 27, 2 * 32 * 15
    op = SeparableConv(1, "same")
    assert op.cost("forward", *specs) == {"forward": Cost(deep + point, (deep + point) // 2)}
    found = op.cost("backward", *specs)
    assert found["backward_data"].flops == 2 * deep + point
    assert found["backward_weights"].flops == deep + point


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 4, 4, 3), (3, 3, 3, 2), (1, 1, 3, 5)), r"w: expected \(1, 1, 6, filters\) .* got \(1, 1, 3, 5\)"),
        (((1, 4, 4, 3), (3, 3, 3, 2), (3, 3, 6, 5)), r"w: expected \(1, 1, 6, filters\)"),
        (((1, 4, 4, 3), (3, 3, 2, 2), (1, 1, 6, 5)), r"expected \(kh, kw, 3, multiplier\)"),
        (((1, 4, 4, 3), (3, 3, 3, 2), (1, 1, 6, 5), (4,)), r"b: expected shape \(5,\) of float32, got \(4,\)"),
        (((1, 4, 4, 3), (3, 3, 3, 2)), "expected inputs x, d, w and perhaps b, got 2 inputs"),
    ],
)
def test_errors(shapes, message):
    with pytest.raises(ValueError, match=message):
        SeparableConv().infer(*map(Spec, shapes))


def test_errors_of_the_normalization_between():
    op, three = (
        SeparableConv(between=BatchNorm(frozen=True)),
        [Spec(s) for s in ((1, 4, 4, 3), (3, 3, 3, 2), (1, 1, 6, 5))],
    )
    with pytest.raises(ValueError, match="x, d, w, 4 of the normalization between and perhaps b, got 3 inputs"):
        op.infer(*three)
    with pytest.raises(ValueError, match=r"beta must have shape \(6,\) .* got shape \(5,\)"):
        op.infer(*three, Spec((6,)), Spec((5,)), Spec((6,)), Spec((6,)))
