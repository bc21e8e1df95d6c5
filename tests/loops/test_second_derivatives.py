"""Second derivatives of all operators: a tape inside a tape's block, beside differences of first derivatives."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, ops, tree
from pydtconv.loops.rules import RULES
from pydtconv.ops.activation import KINDS
from pydtconv.ops.base import Op
from pydtconv.ops.elementwise_loss import KINDS as LOSSES
from tests.ops.result_types import calls, functions


@pytest.fixture(autouse=True)
def doubles():
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx("float32")


def is_real(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def weighted(result, seed):
    """The sum of all real elements of a structure, each with a weight of its own."""
    total, random = None, np.random.default_rng(seed)
    for leaf in tree.flatten(result):
        if getattr(leaf, "dtype", None) == "float64":
            term = ops.sum(ops.multiply(leaf, random.uniform(0.5, 1.5, tuple(leaf.shape))))
            total = term if total is None else total + term
    return total


def first(function, arrays):
    """The gradients of the function's weighted sum; None where it does not depend on an array."""
    with GradientTape() as tape:
        tape.watch(arrays)
        total = weighted(function(*arrays), 1)
        if total is None:
            return None
    return tape.gradient(total, arrays)


def check(function, arrays, step=1e-6, tolerance=2e-5):
    """The derivative of the first derivatives' weighted sum along a direction, beside differences; False for none."""
    found = first(function, arrays)
    if found is None or all(each is None for each in found):
        return False
    with GradientTape() as outer:
        outer.watch(arrays)
        with GradientTape() as inner:
            inner.watch(arrays)
            total = weighted(function(*arrays), 1)
        of_operators = inner.gradient(total, arrays)
        second = weighted([g for g in of_operators if g is not None], 2)
    got = outer.gradient(second, arrays)
    for own, native in zip(of_operators, found, strict=True):  # kernels' backward, by the same operators in words
        if own is not None:
            np.testing.assert_allclose(own.numpy(), np.asarray(native), rtol=1e-6, atol=1e-9)
    random = np.random.default_rng(3)
    direction = [random.uniform(-1, 1, x.shape) for x in arrays]

    def along(t):
        moved = [x + t * d for x, d in zip(arrays, direction, strict=True)]
        return float(weighted([np.asarray(g) for g in first(function, moved) if g is not None], 2))

    expected = (along(step) - along(-step)) / (2 * step)
    value = sum(float(np.sum(np.asarray(g) * d)) for g, d in zip(got, direction, strict=True) if g is not None)
    scale = max(1.0, abs(expected))
    assert abs(value - expected) < tolerance * scale, f"got {value}, by differences {expected}"
    return True


def of_arrays(function, args, kwargs):
    """The function of the real arrays among its arguments, and these."""
    arrays = [x for x in tree.flatten(args) if is_real(x)]

    def apply(*given):
        numbers = iter(given)
        return function(*tree.map_structure(lambda x: next(numbers) if is_real(x) else x, args), **kwargs)

    return apply, arrays


#: those of which a result is an array's shape, or whose first derivative is not here
NO_FIRST = (NotImplementedError, TypeError, ValueError)
#: at bounds, where first derivatives jump
JUMPS = {"divide 3", "divide_no_nan 1", "mod 1", "nanmin 0", "nanmin 2", "power 4"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_all_functions():
    wrong, refused, checked = [], set(), set()
    for name, function in functions(ops):
        for label, args, kwargs in calls(name, function, ["float64"]):
            number, *pair = label.removesuffix(" float64").split()
            apply, arrays = of_arrays(function, args, kwargs)
            if not arrays or pair or f"{name} {number}" in JUMPS:
                continue
            try:
                if not any(each is not None for each in first(apply, arrays) or ()):
                    continue
            except NO_FIRST:
                continue
            checked.add(name)
            try:
                check(apply, arrays)
            except NotImplementedError as error:
                refused.add(name)
                if "cannot be differentiated again: " not in str(error):
                    wrong.append(f"{name}: without a reason: {error}")
            except Exception as error:
                wrong.append(f"{name} {label}: {type(error).__name__}: {str(error)[:150]}")
    assert not wrong, "\n".join(wrong)
    assert not refused
    assert len(checked) > 220


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 1.9, shape) * np.sign(
        np.random.default_rng(seed + 7).uniform(-1, 1, shape)
    )


IMAGES = numbers(2, 6, 5, 4)
FILTERS = numbers(3, 2, 4, 4, seed=1)
LABELS = np.array([0, 3, 2])
SHARES = np.abs(numbers(3, 4, seed=5))
#: operators with the arrays that they are of; integers and booleans are not differentiated
CASES = [
    *((ops.Activation(kind), np.abs(IMAGES) if kind in ("log", "sqrt", "power") else IMAGES) for kind in KINDS),
    (ops.Activation("relu_general", 0.1, 1.2, 0.4), IMAGES),
    (ops.Activation("elu", 0.7, 1.1, 0.9), IMAGES),
    *((ops.Conv(**options), IMAGES, FILTERS, numbers(4)) for options in (
        {}, {"strides": 2}, {"strides": (2, 1), "padding": "same"}, {"dilation": 2}, {"padding": ((2, 1), (0, 1))},
        {"strides": 2, "dilation": (1, 2), "padding": "same"}, {"activation": "relu"}, {"activation": "sigmoid"},
        {"activation": "relu6"}, {"activation": "leaky_relu", "alpha": 0.3}, {"activation": "tanh", "padding": "same"},
    )),
    (ops.Conv(groups=2, padding="same"), IMAGES, numbers(3, 3, 2, 6)),
    (ops.Conv(strides=2), numbers(2, 9, 3), numbers(3, 3, 2)),
    (ops.Conv(padding="same"), numbers(1, 3, 4, 5, 2), numbers(2, 3, 2, 2, 3)),
    (ops.Conv(padding="same", residual=True, activation="relu"), IMAGES, FILTERS, numbers(2, 6, 5, 4, seed=3)),
    *((ops.ConvTranspose(**options), IMAGES, FILTERS, numbers(4)) for options in (
        {}, {"strides": 2}, {"strides": 2, "padding": "same"}, {"dilation": 2, "activation": "relu"},
    )),
    *((ops.DepthwiseConv(**options), IMAGES, numbers(3, 2, 4, 2), numbers(8)) for options in (
        {}, {"strides": 2, "padding": "same"}, {"dilation": 2}, {"activation": "relu"},
    )),
    *((ops.Dense(activation=kind), numbers(3, 4), numbers(4, 5), numbers(5)) for kind in (
        None, "relu", "sigmoid", "gelu", "gelu_tanh", "silu",
    )),
    *((pool((2, 3), **options), IMAGES) for pool in (ops.MaxPool, ops.AveragePool) for options in (
        {}, {"strides": (1, 2)}, {"padding": "same"}, {"strides": (2, 2), "padding": ((1, 0), (2, 1))},
    )),
    (ops.AveragePool((2, 3), (1, 1), "same", count_include_pad=True), IMAGES),
    (ops.AdaptiveAveragePool((4, 2)), IMAGES),
    (ops.AdaptiveMaxPool((4, 2)), IMAGES),
    (ops.GlobalMaxPool(), IMAGES),
    (ops.GlobalMaxPool(keepdims=True), numbers(2, 5, 3)),
    (ops.Upsample((2, 3)), IMAGES),
    (ops.Separable((1, 2), (("resize", 3, "cubic", True), ("filter", (0.5, 1.0)))), IMAGES),
    (ops.Upsample((2, 3), "bilinear"), IMAGES),
    (ops.Pad(((0, 0), (1, 2), (0, 1), (0, 0)), "reflect"), IMAGES),
    (ops.Pad(((0, 0), (1, 2), (2, 0), (0, 0)), "symmetric"), IMAGES),
    (ops.LayerNorm(), IMAGES, numbers(4), numbers(4)),
    (ops.LayerNorm(axis=(2, 3)), IMAGES, numbers(5, 4), numbers(5, 4)),
    (ops.LayerNorm(rms=True, center=False), IMAGES, numbers(4)),
    *((ops.BatchNorm(activation=kind), IMAGES, numbers(4), numbers(4), np.zeros(4), np.ones(4)) for kind in (
        "relu", "silu", "hard_silu",
    )),
    *((ops.Attention(**options), numbers(2, 3, 4, 2), numbers(2, 5, 2, 2), numbers(2, 5, 2, 3)) for options in (
        {}, {"causal": True}, {"scale": 0.3},
    )),
    (ops.Attention(zero_empty=True), numbers(1, 3, 2, 2), numbers(1, 3, 2, 2), numbers(1, 3, 2, 2),
     np.array([[[[1, 0, 1], [0, 0, 0], [1, 1, 1]]]], bool)),
    (ops.TakeRows(), np.array([[1, 3], [1, 0]]), numbers(4, 3)),
    *((ops.ElementwiseLoss(kind), SHARES, np.abs(numbers(3, 4, seed=9))) for kind in LOSSES),
    (ops.CrossEntropy(), SHARES, SHARES[::-1] / SHARES.sum()),
    (ops.CrossEntropy(from_logits=True, label_smoothing=0.1), SHARES, SHARES[::-1] / SHARES.sum()),
    (ops.CrossEntropy("sparse", ignore_class=3), SHARES, LABELS),
    (ops.CrossEntropy("sparse", from_logits=True, axis=0), numbers(4, 3), LABELS),
    (ops.CrossEntropy("binary", label_smoothing=0.2), SHARES / 2, SHARES[::-1] / 2),
    (ops.CrossEntropy("binary", from_logits=True), numbers(3, 4), SHARES[::-1] / 2),
    *((ops.WeightedMean(reduction), numbers(3, 4), np.array([0.5, 2.0, 1.0])) for reduction in (
        "sum", "mean", "mean_with_sample_weight",
    )),
    (ops.L1L2Penalty(0.3, 0.7), numbers(3, 4)),
]  # fmt: skip


def fixed(op):
    """Places of inputs that are not differentiated."""
    return {*op.nondifferentiable, *op.updates}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].name} {case[0]}"[:60])
def test_operators(case):
    op, *inputs = case
    places = [i for i, x in enumerate(inputs) if x.dtype.kind == "f" and i not in fixed(op)]

    def apply(*given):
        values = list(inputs)
        for place, value in zip(places, given, strict=True):
            values[place] = value
        return op(*map(ops.convert_to_tensor, values))

    assert check(apply, [inputs[place] for place in places], tolerance=1e-4)


def test_each_operator_has_a_rule_or_a_reason():
    known = [each for each in vars(ops).values() if isinstance(each, type) and issubclass(each, Op)]
    differentiable = [each for each in known if each.__name__ not in ("Op", "TableOp", "Moments", "ArgMax")]
    assert len(differentiable) > 40
    for each in differentiable:
        written = each.__name__ in RULES or each.gradient or each.formula
        assert bool(written) != ("gradient" in each.lacks), each


def test_third_derivatives():
    """Of sin(x0) x1 + sin(x1) x0; `roll` is differentiated by its transpose, and that by itself."""
    x = np.array([0.3, 0.9])
    with GradientTape() as third:
        third.watch(x)
        with GradientTape() as second:
            second.watch(x)
            with GradientTape() as one:
                one.watch(x)
                y = ops.sum(ops.sin(x) * ops.roll(x, 1))
            slopes = one.gradient(y, x)
        curves = second.gradient(slopes, x)
    # the sums of the second derivatives by each: cos(a) (1 + 1) - sin(a) b, and so of the other
    a, b = x
    expected = [-2 * np.sin(a) - b * np.cos(a) - np.sin(b), -2 * np.sin(b) - a * np.cos(b) - np.sin(a)]
    np.testing.assert_allclose(third.gradient(curves, x).numpy(), expected)


def test_functions_that_were_given():
    """The backward function of an operator of one's own, where NumPy's functions make it up; else a reason."""
    x = np.array([0.3, -0.7])
    square = ops.NumpyOp(lambda x: x**2, lambda dy, x, y: 2 * dy * x, label="square")
    assert check(lambda x: square(ops.convert_to_tensor(x)), [x])
    looped = ops.NumpyOp(lambda x: x**2, lambda dy, x, y: np.array([2 * float(a) for a in x]) * dy, label="looped")
    with GradientTape():
        with GradientTape() as inner:
            inner.watch(x)
            y = ops.sum(looped(ops.convert_to_tensor(x)))
        with pytest.raises(NotImplementedError, match=r"looped: .*made of NumPy's functions alone"):
            inner.gradient(y, x)


def given(backward, x):
    """The gradient inside another tape's block, of an operator with this backward function."""
    op = ops.NumpyOp(lambda x: x**2, lambda dy, x, y: backward(dy, x), label="given")
    with GradientTape():
        with GradientTape() as inner:
            inner.watch(x)
            y = ops.sum(op(ops.convert_to_tensor(x)))
        return inner.gradient(y, x)


@pytest.mark.parametrize(
    "backward",
    [
        lambda dy, x: 2 * dy * x if np.any(x > 5) else dy,
        lambda dy, x: dy * max(x[0], x[1]),
        lambda dy, x: dy * np.mean(np.asarray(x)),
    ],
    ids=["if", "max", "asarray"],
)
def test_functions_that_read_elements_are_refused(backward):
    with pytest.raises(NotImplementedError, match=r"given: .*NumPy's functions alone, got TypeError: expected "):
        given(backward, np.array([0.3, -0.7]))


def test_functions_of_integers_and_booleans_that_were_given():
    def backward(dy, x):
        numbers = (4 * x).astype("int32")
        return dy * (~numbers + (numbers & 6) + (numbers | 3) + 1 * (~(x > 0) | (x > 1)) + np.remainder(x, 0.25))

    x = np.array([0.3, -0.7, 1.6])
    np.testing.assert_allclose(given(backward, x), backward(np.ones(3), x))


def test_gradients_of_functions_that_were_given_have_the_inputs_shape_and_dtype():
    x = np.array([0.3, -0.7], "float32")
    assert given(lambda dy, x: dy * x * np.ones_like(x, dtype="float64"), x).dtype == "float32"
    with pytest.raises(ValueError, match=r"given: backward: expected gradient 0 of shape \(2,\), got \(1, 2\)"):
        given(lambda dy, x: np.reshape(dy * x, (1, 2)), x)
    with pytest.raises(ValueError, match="given: backward: expected 1 gradients, got 2"):
        given(lambda dy, x: (dy, dy), x)
