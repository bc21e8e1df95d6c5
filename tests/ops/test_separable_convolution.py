"""SeparableConv: reference, gradients, moments, errors; strips that are cut, chunks of channels, borders."""

import numpy as np
import pytest

from pydtconv.conv.problem import same_padding
from pydtconv.ops.base import Cost, Retained, Spec
from pydtconv.ops.separable_convolution import SeparableConv
from tests.ops.harness import check_op, normal
from tests.ops.runner import Options, run_op
from tests.reference import conv as reference

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
