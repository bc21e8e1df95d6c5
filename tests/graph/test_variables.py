"""Variables in NumPy's functions."""

import numpy as np
import pytest

import pydtconv
from pydtconv import GradientTape, Variable, layers

VALUE = np.array([[1.0, 4.0], [9.0, 16.0]], "float32")


@pytest.mark.parametrize(
    "function",
    [np.sum, np.max, np.any, np.std, np.exp, np.isfinite, np.ptp, np.abs, lambda x: np.add.outer(x, x), np.modf],
)
def test_functions_of_numpy_take_the_value(function):
    found, expected = function(Variable(VALUE)), function(VALUE)
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


def test_operators_with_arrays_are_those_of_variables():
    variable = Variable(VALUE)
    for found, expected in (
        (VALUE - variable, VALUE - VALUE),
        (np.float64(2) ** variable, 2**VALUE),
        (VALUE @ variable, VALUE @ VALUE),
        (np.greater(VALUE, variable), VALUE > VALUE),
        (np.subtract(variable, 1), VALUE - 1),
        (np.equal(VALUE, variable), VALUE == VALUE),
    ):
        np.testing.assert_array_equal(found, expected)
    with GradientTape() as tape:
        total = np.ones((2, 2), "float32")
        total += variable
        loss = pydtconv.ops.sum(total * total * VALUE)
    np.testing.assert_array_equal(tape.gradient(loss, variable), 2 * (VALUE + 1) * VALUE)
    inputs = pydtconv.Input((2,))
    assert (Variable(VALUE[0]) * inputs).shape == (None, 2)


class Scaled(layers.Layer):
    """Reads a variable as a number."""

    def build(self, shape):
        self.beta = self.add_weight(shape=(), initializer="ones", trainable=False)
        self.steps = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, inputs, training=False):
        y = inputs * float(self.beta) + float(self.steps)
        if training:
            self.steps.assign_add(1.0)
        return y


def test_steps_see_values_that_change_of_variables_that_are_not_trained():
    x = np.ones((4, 2), "float32")
    model = pydtconv.Sequential([pydtconv.Input((2,)), layers.Dense(2, kernel_initializer="identity"), Scaled()])
    model.compile(pydtconv.optimizers.SGD(0.0), "mse")
    for beta in 1.0, 3.0, 1.0:
        model.layers[1].beta.assign(beta)
        for found in model.predict(x, verbose=0), model(x):
            np.testing.assert_array_equal(found, beta * x)
    assert len(model._pydt_steps.plans) == 2
    history = model.fit(x, x, batch_size=1, epochs=1, verbose=0, shuffle=False)
    assert history.history["loss"] == [np.mean(np.square(range(4)))]


@pytest.mark.parametrize("function", [np.exp, np.cumsum, float, Variable.numpy])
def test_values_are_refused_in_a_call_that_is_traced(function):
    """It would be traced with the value of that moment, and trained without the weight."""

    class Own(layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(), initializer="ones")

        def call(self, inputs):
            return inputs * function(self.scale)

    model = pydtconv.Sequential([pydtconv.Input((2,)), Own()])
    np.testing.assert_allclose(model(VALUE), VALUE * function(np.float32(1)) if function is np.exp else VALUE)
    model.compile("sgd", "mse")
    for run in model.fit, model.evaluate:
        with pytest.raises(TypeError, match="expected the variable itself"):
            run(VALUE, VALUE, verbose=0)


@pytest.mark.parametrize("name", ["zeros", "ones", "orthogonal", "glorot_uniform", "RandomNormal"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_initializers_have_names(name, dtype):
    found = Variable(name, (3, 2), dtype)
    assert (found.shape, found.dtype) == ((3, 2), dtype)
    if name in ("zeros", "ones"):
        np.testing.assert_array_equal(found, getattr(np, name)((3, 2)))
    with pytest.raises(ValueError, match="unknown initializer 'onse'"):
        Variable("onse", (3, 2))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, "int32"), ([[1, 2]], "int32"), (True, "bool"), (1.0, "float32"), ([1, 2.5], "float32"), ("ones", "float32")],
)
def test_dtypes_of_numbers_of_python(value, dtype):
    assert Variable(value, () if value == "ones" else None).dtype == dtype


@pytest.mark.parametrize("name", ["regularizer", "constraint"])
def test_regularizers_and_constraints_are_functions_or_none(name):
    variable = Variable(np.ones(2), name="w")
    for value in (np.abs, None):
        setattr(variable, name, value)
        assert getattr(variable, name) is value
    with pytest.raises(ValueError, match=f"variable 'w': {name}: expected a function or None, got 'l2'"):
        setattr(variable, name, "l2")
    assert getattr(variable, name) is None
    with pytest.raises(TypeError, match="variable 'w': overwrite_with_gradient: expected True or False, got 'true'"):
        variable.overwrite_with_gradient = "true"
