"""Tensors of a recording as Python code sees them: arithmetic, comparison, what is asked of a number."""

import math
import operator
import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, function, layers, ops
from tests.loops.small_models import X, model_of


@pytest.mark.parametrize(
    ("square", "slope"),
    [
        (lambda x: ops.square(x), lambda x: 2 * x),
        (lambda x: ops.sin(x), np.cos),
        (lambda x: ops.where(ops.greater(x, 1.5), ops.power(x, 3.0), 0.0), lambda x: 3 * x**2 * (x > 1.5)),
    ],
)
def test_functions_of_a_watched_array_are_recorded(square, slope):
    x = np.array([1.0, 2.0, 3.0], "float32")
    with GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    np.testing.assert_allclose(tape.gradient(y, x), slope(x), rtol=1e-5)


def test_arithmetic_of_numpy_on_a_watched_array_is_refused():
    x = np.array([1.0, 2.0, 3.0], "float32")
    with GradientTape() as tape:
        tape.watch(x)
        y = x * 2
    with pytest.raises(ValueError, match=r"target: expected what layers or ops gave .* NumPy's own arithmetic"):
        tape.gradient(y, x)


def test_tensors_of_arrays_have_arithmetic_that_is_recorded():
    a = np.full((2, 3), 2, "float32")
    with GradientTape(persistent=True) as tape:
        tape.watch(a)
        b = ops.convert_to_tensor(a)
        value = ops.sum(b * b) + ops.sum(1 - b[:, 1:])
    np.testing.assert_allclose(tape.gradient(value, a), [[4, 3, 3], [4, 3, 3]])
    np.testing.assert_allclose(tape.gradient(value, b), [[4, 3, 3], [4, 3, 3]])
    assert type(ops.convert_to_tensor(a)) is np.ndarray


def test_views_of_watched_arrays_are_refused():
    model = keras.Sequential([keras.Input((2,)), layers.Dense(3)])
    both = np.ones((4, 5), "float32")
    a, other = both[:, :3], both[:, 3:]
    with GradientTape() as tape:
        tape.watch(a)
        for use in (model, ops.sum, lambda x: ops.add(model(np.ones((4, 2), "float32"))[:, :2], x)):
            with pytest.raises(ValueError, match=r"shape \(4, 2\) is NumPy's view of one that a GradientTape watches"):
                use(a[:, 1:])
        value = ops.sum(ops.square(a)) + ops.sum(model(other)) + ops.sum(model(a[:, 1:].copy()))
    np.testing.assert_allclose(tape.gradient(value, a), np.full((4, 3), 2))


def test_equality_is_element_by_element():
    count = keras.Variable(np.zeros(()), trainable=False)

    @function
    def compared(x):
        count.assign_add(1.0)
        return ops.cast(x == 1, "float32"), ops.where(x != x[0], 1.0, 0.0), count == 2.0

    x = np.array([1, 2, 1], "float32")
    for number in (1, 2, 3):
        equal, other, second = compared(x)
        np.testing.assert_array_equal(equal, [1, 0, 1])
        np.testing.assert_array_equal(other, [0, 1, 0])
        assert bool(second) == (number == 2)


def test_a_loss_of_fit_may_compare_its_targets():
    def masked(y, p):
        return ops.sum(ops.cast(y != -1.0, "float32") * ops.square(p - y), axis=-1)

    model = model_of(keras.Model)
    model.compile("sgd", masked)
    y = np.array([[1], [-1], [2], [-1]], "float32")
    expected = np.mean(np.square(np.asarray(model(X)) - y) * (y != -1))
    assert model.evaluate(X, y, verbose=0) == pytest.approx(expected, rel=1e-5)
    model.compile("sgd", lambda y, p: ops.mean(p) if ops.mean(y) > 0 else -ops.mean(p))
    with pytest.raises(TypeError, match="no truth value"):
        model.evaluate(X, y, verbose=0)


#: what code may ask of a loss or of a metric's result: names of the module `operator`, of Python, and of tensors
UNARY = {name: getattr(operator, name) for name in ("neg", "pos", "abs", "not_", "truth")} | {
    "round": round, "round to 2": lambda x: round(x, 2), "float": float, "int": int, "bool": bool, "complex": complex,
    "floor": math.floor, "ceil": math.ceil, "isfinite": math.isfinite, "sqrt": math.sqrt, "format": "{:.3f}".format,
    "divmod": lambda x: divmod(x, 2), "divmod of 7": lambda x: divmod(7, x), "in": lambda x: x in (2.5,),
    "not in": lambda x: x not in (1.0,), "sum": lambda x: sum([x, x]), "max": lambda x: max(x, 1.0),
    "array": lambda x: np.asarray(x).item(), "item": lambda x: x.item(), "shape": lambda x: tuple(x.shape),
    "numpy": lambda x: np.float32(x) if isinstance(x, np.generic) and not hasattr(x, "numpy") else x.numpy(),
    "where": lambda x: np.asarray(ops.where(x == 2.5, 1.0, 0.0)).item(),
}  # fmt: skip
BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "eq", "ne", "ge", "gt"),
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"),
)


def asked(kind, call, value):
    """What the call gives of a loss, or of a metric's result, in a step that is traced as far as that can be."""
    metric = keras.metrics.Mean()

    @keras.function
    def step(x):
        metric.update_state(x)
        return call(metric.result() if kind == "metric" else ops.sum(x))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it runs as it is written, where the value is needed
        return step(np.array([value], "float32"))


@pytest.mark.parametrize("kind", ["loss", "metric"])
@pytest.mark.parametrize("name", UNARY)
def test_a_step_may_ask_what_it_asks_of_a_number(kind, name):
    for value in 2.5, 1.0:
        found, want = asked(kind, UNARY[name], value), UNARY[name](np.float32(value))
        assert found == want if isinstance(want, str) else np.allclose(found, want)


@pytest.mark.parametrize("kind", ["loss", "metric"])
@pytest.mark.parametrize("name", BINARY)
def test_a_step_may_calculate_and_compare_as_with_a_number(kind, name):
    call = getattr(operator, name)
    for value, other in (2.5, 2.5), (2.5, 2.0), (1.0, 3.0):
        found = asked(kind, lambda x, other=other: call(x, other), value)
        np.testing.assert_allclose(found, call(np.float32(value), other), rtol=1e-6)
        found = asked(kind, lambda x, other=other: call(other, x), value)
        np.testing.assert_allclose(found, call(other, np.float32(value)), rtol=1e-6)
