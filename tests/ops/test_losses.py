"""Losses: values as Keras defines them, gradients, labels, reductions."""

import numpy as np
import pytest

from pydtconv.kernels import compute
from pydtconv.ops import (
    CrossEntropy,
    ElementwiseLoss,
    L1L2Penalty,
    SigmoidCrossEntropy,
    SoftmaxCrossEntropy,
    WeightedMean,
    WeightedSum,
)
from tests.marks import slow
from tests.ops.harness import away_from, check_op, normal
from tests.reference import losses as reference
from tests.reference.softmax import softmax

SHAPES = [(6, 10), (5, 2), (3, 17), (2, 3, 4, 5), (7,)]


def uniform(*shape, low=0.05, high=0.95, seed=3):
    return np.random.default_rng(seed).uniform(low, high, shape)


def distributions(*shape):
    return softmax(normal(*shape, seed=4)).astype("float32").astype("float64")


def smooth(t, s):
    return t * (1 - s) + s / t.shape[-1]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_categorical(shape, smoothing):
    t = distributions(*shape)
    check_op(
        CrossEntropy(from_logits=True, label_smoothing=smoothing),
        3 * normal(*shape),
        t,
        reference=lambda x, t: reference.categorical(x, smooth(t, smoothing), True),
    )
    check_op(
        CrossEntropy(label_smoothing=smoothing),
        uniform(*shape),
        t,
        reference=lambda x, t: reference.categorical(x, smooth(t, smoothing), False),
    )
    check_op(
        SoftmaxCrossEntropy(label_smoothing=smoothing),
        3 * normal(*shape),
        t,
        reference=lambda x, t: (softmax(x), reference.categorical(x, smooth(t, smoothing), True)),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["int32", *map(slow, ("int64", "float32", "float64"))])
@pytest.mark.parametrize("column", [False, True])
def test_sparse(shape, dtype, column):
    labels = np.random.default_rng(4).integers(0, shape[-1], (*shape[:-1], 1) if column else shape[:-1]).astype(dtype)
    hot = reference.one_hot(labels.reshape(shape[:-1]), shape[-1])
    logits, probabilities = 3 * normal(*shape), uniform(*shape)
    check_op(
        CrossEntropy("sparse", from_logits=True),
        logits,
        labels,
        reference=lambda x, t: reference.categorical(x, hot, True),
    )
    check_op(CrossEntropy("sparse"), probabilities, labels, reference=lambda x, t: reference.categorical(x, hot, False))
    check_op(
        SoftmaxCrossEntropy("sparse"),
        logits,
        labels,
        reference=lambda x, t: (softmax(x), reference.categorical(x, hot, True)),
    )


@pytest.mark.parametrize("kind", ["categorical", "sparse", "binary"])
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("axis", [1, 0])
def test_other_axes(kind, from_logits, axis):
    x = normal(4, 5, 6) if from_logits else uniform(4, 5, 6)
    if kind == "sparse":
        t = np.random.default_rng(4).integers(0, x.shape[axis], np.delete(x.shape, axis))
        hot = reference.one_hot(t, x.shape[axis], axis)
    else:
        t = hot = np.moveaxis(distributions(5, 6, 4), -1, 0)
    loss = reference.binary if kind == "binary" else reference.categorical
    op = CrossEntropy(kind, from_logits, axis=axis)
    check_op(op, x, t, reference=lambda x, t: loss(x, hot if kind == "sparse" else t, from_logits, axis))


@pytest.mark.parametrize("shape", [*SHAPES, (5, 1)], ids=str)
@pytest.mark.parametrize("s", [0.0, 0.25])
def test_binary(shape, s):
    t = np.random.default_rng(5).integers(0, 2, shape).astype("float64")

    def smoothed(t):
        return t * (1 - s) + s / 2

    check_op(
        CrossEntropy("binary", True, s),
        2 * normal(*shape),
        t,
        reference=lambda x, t: reference.binary(x, smoothed(t), True),
    )
    check_op(
        CrossEntropy("binary", False, s),
        uniform(*shape),
        t,
        reference=lambda x, t: reference.binary(x, smoothed(t), False),
    )
    check_op(
        SigmoidCrossEntropy(label_smoothing=s),
        2 * normal(*shape),
        t,
        reference=lambda x, t: (1 / (1 + np.exp(-x)), reference.binary(x, smoothed(t), True)),
    )


def test_many_samples_on_several_threads():
    labels = np.random.default_rng(4).integers(0, 11, 9000)
    for op in (CrossEntropy("sparse", True), SoftmaxCrossEntropy("sparse")):
        check_op(op, normal(9000, 11), labels, rtol_gradient=1e-5)
    check_op(CrossEntropy("binary", True), normal(9000, 11), uniform(9000, 11), rtol_gradient=1e-5)


def test_probabilities_are_clipped():
    """As Keras: certain and wrong costs -log(epsilon), and has no gradient."""
    loss = compute(CrossEntropy("sparse"), np.array([[1.0, 0.0], [3.0, 1.0]]), np.array([1, 0]))
    np.testing.assert_allclose(loss, [-np.log(1e-7), -np.log(0.75)])
    loss = compute(CrossEntropy("binary"), np.array([[1.0], [0.0]]), np.array([[0.0], [0.0]]))
    np.testing.assert_allclose(loss, [-np.log(1e-7), 1e-7], rtol=1e-6)


def test_large_logits_stay_exact():
    x = np.array([[1000.0, 0.0], [-1000.0, 0.0]], "float32")
    probabilities, loss = compute(SoftmaxCrossEntropy("sparse"), x, np.array([1, 1]))
    np.testing.assert_array_equal(loss, [1000, 0])
    np.testing.assert_array_equal(probabilities, [[1, 0], [0, 1]])
    probabilities, loss = compute(SigmoidCrossEntropy(), x[:, :1], np.ones((2, 1), "float32"))
    np.testing.assert_array_equal(loss, [0, 1000])
    np.testing.assert_array_equal(probabilities, [[1], [0]])


def test_ignored_class():
    labels = np.array([2, -1, 0, 255, 1])
    for ignore in (-1, 255):
        given = np.where(labels == (255 if ignore == -1 else -1), 1, labels)
        mask = (given != ignore)[:, None]
        hot = reference.one_hot(np.where(mask[:, 0], given, 0), 3) * mask
        check_op(
            CrossEntropy("sparse", True, ignore_class=ignore),
            normal(5, 3),
            given,
            reference=lambda x, t, hot=hot: reference.categorical(x, hot, True),
        )
        check_op(
            SoftmaxCrossEntropy("sparse", ignore_class=ignore),
            normal(5, 3),
            given,
            reference=lambda x, t, hot=hot: (softmax(x), reference.categorical(x, hot, True)),
        )


@pytest.mark.parametrize("bad", [-1, 3, 2**40])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("op", [CrossEntropy("sparse"), SoftmaxCrossEntropy("sparse")], ids=lambda op: op.name)
def test_labels_that_are_no_class(bad, dtype, op):
    with pytest.raises(ValueError, match=rf"labels from 0 to 2 in y_true.*{int(bad) if bad < 9 else ''}"):
        op(uniform(4, 3), np.array([0, 1, bad, 2], dtype))


def test_labels_that_are_not_finite():
    with pytest.raises(ValueError, match="labels from 0 to 2"):
        CrossEntropy("sparse")(uniform(2, 3), np.array([0, np.nan]))


@pytest.mark.parametrize("kind", sorted(reference.ELEMENTWISE))
@pytest.mark.parametrize("shape", [(6, 10), (5, 1), (2, 3, 4, 5)], ids=str)
def test_elementwise(kind, shape):
    positive = kind in ("msle", "poisson", "kl_divergence")
    t = uniform(*shape, seed=6) if positive else away_from(normal(*shape, seed=6), 0)
    x = uniform(*shape, seed=7) if positive else t + away_from(2 * normal(*shape, seed=7), 0, 0.75, -0.75)
    if "hinge" in kind:
        x = away_from(x * t, 1) / t
    op = ElementwiseLoss(kind, delta=0.75)
    check_op(op, x, t, reference=lambda x, t: reference.ELEMENTWISE[kind](x, t, 0.75), rtol64=1e-11, rtol=1e-4)


@pytest.mark.parametrize("kind", ["hinge", "squared_hinge"])
def test_hinge_takes_zero_and_one_for_signs(kind):
    t = np.random.default_rng(5).integers(0, 2, (6, 4)).astype("float64")
    check_op(ElementwiseLoss(kind), normal(6, 4), t, reference=lambda x, t: reference.ELEMENTWISE[kind](x, t, 1.0))


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean", "sum", "mean_with_sample_weight"])
@pytest.mark.parametrize("weights", [None, (6,), (6, 1), (6, 5), (6, 5, 3)], ids=str)
def test_weighted_mean(reduction, weights):
    values = normal(6, 5, 3)
    divisor = {"sum": 1.0}.get(reduction, 90.0)
    if weights is None:
        check_op(WeightedMean(reduction), values, reference=lambda v: v.sum() / divisor)
        return
    w = uniform(*weights)

    def expected(v, w):
        by = w.sum() if reduction == "mean_with_sample_weight" else divisor
        return (v * w.reshape(tuple(n for n in w.shape if n > 1) + (1,) * (3 - sum(n > 1 for n in w.shape)))).sum() / by

    check_op(WeightedMean(reduction), values, w, reference=expected)


def test_weights_of_zero():
    assert compute(WeightedMean("mean_with_sample_weight"), np.ones(3), np.zeros(3)) == 0


def test_sums_of_many_values():
    check_op(WeightedMean(), normal(100000), reference=lambda v: v.mean(), rtol_gradient=1e-4)
    check_op(WeightedMean(), normal(50000, 2), uniform(50000), rtol_gradient=1e-4)
    check_op(
        L1L2Penalty(0.1, 0.2),
        away_from(normal(100000), 0, distance=1e-3),
        rtol_gradient=1e-5,
        step=1e-6,
        reference=lambda w: 0.1 * np.abs(w).sum() + 0.2 * (w**2).sum(),
    )


@pytest.mark.parametrize(("l1", "l2"), [(0.1, 0.0), (0.0, 0.2), (0.3, 0.4)])
def test_penalty(l1, l2):
    check_op(
        L1L2Penalty(l1, l2),
        away_from(normal(3, 3, 4, 5), 0),
        reference=lambda w: l1 * np.abs(w).sum() + l2 * (w**2).sum(),
    )


def test_weighted_sum():
    scalars = [np.float64(v) for v in (1.5, -2.0, 0.25)]
    check_op(WeightedSum((1.0, 0.5, 2.0)), *scalars, reference=lambda a, b, c: a + b / 2 + 2 * c)
    check_op(WeightedSum(), *scalars, reference=lambda a, b, c: a + b + c)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CrossEntropy("multi"), "'multi'"),
        (lambda: CrossEntropy(label_smoothing=2), r"\[0, 1\]"),
        (lambda: CrossEntropy("sparse", label_smoothing=0.1), "label_smoothing"),
        (lambda: CrossEntropy(ignore_class=1), "ignore_class"),
        (lambda: CrossEntropy()(normal(4, 3), normal(4, 2)), r"shape \(4, 3\)"),
        (lambda: CrossEntropy("sparse")(normal(4, 3), np.zeros((4, 3), int)), "labels"),
        (lambda: CrossEntropy("sparse")(normal(4, 3), np.zeros(4, bool)), "got bool"),
        (lambda: CrossEntropy(axis=2)(normal(4, 3), normal(4, 3)), "axis=2"),
        (lambda: ElementwiseLoss("l2"), "'l2'"),
        (lambda: ElementwiseLoss()(normal(4, 3), normal(4)), r"shape \(4, 3\)"),
        (lambda: WeightedMean("average"), "'average'"),
        (lambda: WeightedMean()(normal(4, 3), normal(3)), "first dimensions"),
        (lambda: WeightedSum((1.0,))(np.float64(1), np.float64(2)), "one for each weight"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
