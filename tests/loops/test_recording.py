"""What a recording reads: variables, arrays and settings as they were when the code ran."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, ops
from pydtconv.engine import workspace
from tests.loops.small_models import X, dense


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


def test_steps_of_a_loop_with_several_results_have_one_plan(monkeypatch):
    planned, plan = [], workspace.planned
    monkeypatch.setattr(workspace, "planned", lambda *args, **kwargs: (planned.append(1), plan(*args, **kwargs))[1])
    w, others = keras.Variable(np.ones((3, 2), "float32")), []
    for step in range(20):
        others.append([object() for _ in range(7 * step)])  # objects lie elsewhere in each step
        with GradientTape() as tape:
            y = ops.matmul(np.ones((4, 3), "float32"), w)
            parts = [y * float(n) for n in range(6)]
            loss = ops.mean(sum(parts) ** 2)
        assert np.isfinite(np.asarray(tape.gradient(loss, w))).all()
        assert [float(ops.max(part)) for part in parts] == [3.0 * n for n in range(6)]
    assert len(planned) <= 3


LARGE = np.array([[2**40 + 1], [2**40 + 3], [2**24 + 1]])
TEXTS = np.array([["a cat"], ["the dog"], [""]])


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (keras.layers.IntegerLookup(vocabulary=[2**40 + 1, 2**24, 2**24 + 1, 2**40 + 3]), LARGE),
        (keras.layers.Hashing(50), LARGE),
        (keras.layers.StringLookup(vocabulary=["the dog", ""]), TEXTS),
        (keras.layers.Hashing(50), TEXTS),
        (keras.layers.TextVectorization(vocabulary=["cat", "dog"], output_sequence_length=3), TEXTS),
    ],
)
def test_integers_and_strings_reach_layers_as_they_are(layer, x):
    inputs = keras.Input((1,), dtype="string" if x is TEXTS else "int64")
    model = keras.Model(inputs, layer(inputs))
    expected = np.asarray(layer(x)).reshape(3, -1)
    with GradientTape():
        np.testing.assert_array_equal(np.asarray(model(x)), expected)
    if x is TEXTS:
        with pytest.raises(TypeError, match="traced code: expected real numbers, got str"):
            keras.function(model)(x)
    else:
        np.testing.assert_array_equal(np.asarray(keras.function(model)(x)), expected)
