"""Values that Python code takes in silence: what is frozen by tracing, what runs late, what keys tell apart."""

import copy
import math
import operator
import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, function, layers, ops

X = np.random.default_rng(0).random((4, 3)).astype("float32")


def dense():
    layer = layers.Dense(1, kernel_initializer="ones", use_bias=False)
    layer.build((None, 3))
    return layer


def model_of(kind, rate=0.1):
    inputs = keras.Input((3,))
    model = kind(inputs, layers.Dense(1)(inputs))
    model.compile(keras.optimizers.SGD(rate), "mse")
    return model


# --- traced code ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduled", [False, True])
def test_the_rate_and_the_count_of_steps_are_not_those_of_the_first_trace(scheduled):
    class Logged(keras.Model):
        def train_step(self, data):
            odd = self.optimizer.iterations % 2 == 1
            rate, count = float(self.optimizer.learning_rate), int(self.optimizer.iterations)
            super().train_step(data)
            return {"odd": 1.0 if odd else 0.0, "rate": rate, "count": count}

    rate = keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5) if scheduled else 0.5
    model, found = model_of(Logged, rate), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            found.append(model.train_on_batch(X, X[:, :1], return_dict=True))
            if not scheduled:
                model.optimizer.learning_rate = float(model.optimizer.learning_rate) / 2
    assert found == [{"odd": i % 2, "rate": 0.5 / 2**i, "count": i} for i in range(3)]
    assert any("runs as it is written" in str(each.message) for each in caught)


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


def test_arguments_that_are_equal_but_not_alike_are_traced_each():
    @function
    def scaled(x, by):
        return x * float(sum(by)) if isinstance(by, set) else x * (4.0 if isinstance(by, bool) else float(by) + 1)

    x = np.ones(2, "float32")
    assert [float(scaled(x, {i})[0]) for i in (1, 2, 3)] == [1, 2, 3]
    assert [float(scaled(x, by)[0]) for by in (True, 1, 1.0)] == [4, 2, 2]


def test_a_function_of_a_subclass_calls_that_of_its_parent():
    class Parent(keras.Model):
        @function
        def step(self, x):
            return self(x) * 2.0

    class Child(Parent):
        @function
        def step(self, x):
            return super().step(x) + 1.0

    model = model_of(Child)
    expected = np.asarray(model(X)) * 2 + 1
    np.testing.assert_allclose(model.step(X), expected, rtol=1e-6)
    other = copy.deepcopy(model)
    other.layers[-1].set_weights([np.zeros((3, 1)), np.zeros(1)])
    np.testing.assert_array_equal(other.step(X), np.ones((4, 1)))
    np.testing.assert_allclose(model.step(X), expected, rtol=1e-6)


def test_a_watched_array_of_a_traced_function_has_a_gradient():
    layer, image = dense(), np.ones((2, 3), "float32")

    @function
    def slope():
        with GradientTape() as tape:
            tape.watch(image)
            y = ops.sum(layer(image) * 2.0)
        return tape.gradient(y, image)

    np.testing.assert_array_equal(slope(), np.full((2, 3), 2.0))


# --- what changes variables, and when ---------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True])
def test_moving_averages_go_on_where_nothing_reads_the_result(traced):
    layer = layers.BatchNormalization(momentum=0.5)
    layer.build((None, 3))

    def step(x):
        with GradientTape():
            layer(x, training=True)
        return ops.sum(x * 1.0)

    (function(step) if traced else step)(X)
    np.testing.assert_allclose(layer.moving_mean.numpy(), X.mean(0) / 2, rtol=1e-5)


def test_a_metric_that_a_tape_saw_is_up_to_date():
    mean = keras.metrics.Mean()
    with GradientTape():
        mean.update_state(dense()(X))
    assert float(mean.result()) == pytest.approx(X.sum(1).mean(), rel=1e-6)


@pytest.mark.parametrize("how", ["assign", "set_weights", "fit", "another tape"])
def test_what_was_recorded_reads_variables_as_they_were(how):
    layer = dense()
    with GradientTape():
        total = ops.sum(layer(X))
    if how == "assign":
        layer.kernel.assign(np.zeros((3, 1)))
    elif how == "set_weights":
        layer.set_weights([np.zeros((3, 1))])
    elif how == "fit":
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(0.5), "mse")
        model.train_on_batch(X, X[:, :1])
    else:
        with GradientTape() as tape:
            loss = ops.sum(layer(X))
        keras.optimizers.SGD(0.5).apply(tape.gradient(loss, [layer.kernel]), [layer.kernel])
    assert float(total) == pytest.approx(X.sum(), rel=1e-6)


def test_gradients_after_an_assignment_are_refused():
    layer = dense()
    with GradientTape(persistent=True) as tape:
        loss = ops.sum(ops.square(layer(X)))
        twice = loss * 2.0
    layer.kernel.assign_sub(0.1 * tape.gradient(loss, layer.kernel))
    with pytest.raises(RuntimeError, match="was changed after it was read"):
        tape.gradient(twice, layer.kernel)


def test_arrays_are_read_as_they_were():
    buffer, one = np.ones(3, "float32"), np.ones(1, "float32")
    variable, mean = keras.Variable(np.ones(3, "float32")), keras.metrics.Mean()
    with GradientTape() as tape:
        total = 0.0
        for number in range(3):
            buffer[:], one[:] = number, number
            total = total + ops.sum(variable * buffer) + ops.sum(variable * one)
            mean.update_state(buffer)
    gradient = tape.gradient(total, variable)
    buffer[:], one[:] = 100, 100
    assert float(total) == 18
    np.testing.assert_array_equal(gradient, np.full(3, 6.0))
    assert float(mean.result()) == 1


@pytest.mark.parametrize("traced", [False, True])
def test_a_copy_of_a_variable_stays(traced):
    layer, optimizer = dense(), keras.optimizers.SGD(1.0)

    def step(x):
        with GradientTape() as tape:
            loss = ops.sum(layer(x))
        before = ops.copy(layer.kernel)
        optimizer.apply(tape.gradient(loss, [layer.kernel]), [layer.kernel])
        return before, ops.sum(layer.kernel)

    before, after = (function(step) if traced else step)(X)
    np.testing.assert_array_equal(before, np.ones((3, 1)))
    assert float(after) == pytest.approx(3 - X.sum(), rel=1e-5)
    kept = ops.copy(layer.kernel)
    layer.kernel.assign(np.zeros((3, 1)))
    assert np.all(np.asarray(kept) != 0)
    count = keras.Variable(np.zeros((), "int32"), dtype="int32", trainable=False)
    kept = ops.copy(count)
    count.assign(5)
    assert int(kept) == 0


def test_a_plan_is_of_the_precision_in_force():
    layer, counts = dense(), []
    try:
        for precision in ("fast", "strict", "fast"):
            keras.config.set_conv_precision(precision)
            with GradientTape():
                total = ops.sum(layer(X))
            assert float(total) == pytest.approx(X.sum(), rel=1e-6)
            counts.append(sum(len(variable.kept or ()) for variable in layer.weights))
    finally:
        keras.config.set_conv_precision("fast")
    assert counts[1] == counts[0] + 1 == counts[2]


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
