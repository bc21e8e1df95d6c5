"""Which sources a result depends on, and what is given where it depends on none."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, ops
from tests.loops.small_models import numbers, small_model


def test_only_what_runs_inside_is_differentiated():
    model = small_model()
    x = numbers(2, 6, 6, 2)
    target = model(x)
    with GradientTape() as tape:
        scores = model(x)
        with tape.stop_recording():
            fixed = model(x) * 3.0
        loss = ops.mean(scores * ops.stop_gradient(scores)) + ops.mean(fixed) + ops.mean(target)
    gradient = tape.gradient(loss, model.layers[-1].bias)
    np.testing.assert_allclose(gradient, np.asarray(target).sum(0) / 4, rtol=1e-5)


def test_what_does_not_depend_on_a_source_has_no_gradient():
    model, other = small_model(), small_model()
    x = numbers(2, 6, 6, 2)
    with GradientTape(persistent=True) as tape:
        loss = ops.sum(model(x))
        other(x)
    assert tape.gradient(loss, other.trainable_variables) == [None] * 4
    zeros = tape.gradient(loss, other.trainable_variables, unconnected_gradients="zero")
    assert all(not np.any(zero) for zero in zeros)
    wide = keras.Variable(np.ones(3), dtype="float64")
    assert tape.gradient(loss, wide, unconnected_gradients="zero").dtype == "float64"
    optimizer = keras.optimizers.SGD()
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply(tape.gradient(loss, other.trainable_variables), other.trainable_variables)


def test_zeros_for_no_gradient_have_the_dtype_of_the_source():
    x = np.ones(2)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ops.convert_to_tensor(np.ones(3)) * 2.0
    assert tape.gradient(y, x, unconnected_gradients="zero").dtype == "float64"
    assert tape.jacobian(y, x, unconnected_gradients="zero").dtype == "float64"
