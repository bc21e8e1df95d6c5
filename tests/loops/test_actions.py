"""What happens in a recording beside operators: steps of optimizers, assignments, metrics, each in its order."""

import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, function, layers, ops
from pydtconv.loops.function import Function
from tests.loops.small_models import IMAGES, LABELS, Own, X, dense, model_of, network


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


def test_gradients_after_an_assignment_are_refused():
    layer = dense()
    with GradientTape(persistent=True) as tape:
        loss = ops.sum(ops.square(layer(X)))
        twice = loss * 2.0
    layer.kernel.assign_sub(0.1 * tape.gradient(loss, layer.kernel))
    with pytest.raises(RuntimeError, match="was changed after it was read"):
        tape.gradient(twice, layer.kernel)


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


def test_slots_are_in_the_order_in_which_variables_are_given():
    """As files keep them, which are read into an optimizer that was built with the trainable variables."""
    orders = []
    for kind, eager in ((keras.Model, False), (Own, False), (Own, True)):
        model = network(kind, run_eagerly=eager)
        model.fit(IMAGES, LABELS, verbose=0)
        orders.append([variable.shape for variable in model.optimizer.variables])
    assert orders[1] == orders[2] == orders[0]


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_are_of_what_a_block_has_read_before_it_assigned(traced):
    """A queue of features that a loss reads and then fills, as contrastive learning has it."""
    queue = keras.Variable(np.arange(12, dtype="float32").reshape(4, 3) / 12, trainable=False)
    x = keras.Variable(np.arange(6, dtype="float32").reshape(2, 3) / 6 - 0.4)

    def step():
        with GradientTape() as tape:
            y = x * queue[:2]
            queue.assign(ops.concatenate([ops.stop_gradient(y) + 5.0, queue[:-2]], axis=0))
            loss = ops.sum(y * y) + ops.sum(x * queue[:2])
        return tape.gradient(loss, x)

    old = queue.numpy()
    new = x.numpy() * old[:2] + 5
    found = (Function(step) if traced else step)()
    np.testing.assert_allclose(found, 2 * x.numpy() * old[:2] ** 2 + new, rtol=1e-5)
    np.testing.assert_allclose(queue, np.concatenate([new, old[:-2]]), rtol=1e-6)


def test_what_was_read_beside_the_way_to_the_loss_may_not_have_changed():
    state, x = keras.Variable([2.0, 3.0], trainable=False), keras.Variable([1.0, 1.0])
    with GradientTape() as tape:
        y = x * ops.exp(state) * x
    state.assign([0.0, 0.0])
    with pytest.raises(RuntimeError, match="was changed after it was read"):
        tape.gradient(y, x)


def test_a_variable_that_is_assigned_and_looked_at_before_it_is_read():
    weight, scale = keras.Variable([1.0, 2.0]), keras.Variable(0.0, trainable=False)
    with GradientTape() as tape:
        loss = ops.sum(weight * weight)
        scale.assign(loss)
        assert float(scale) == 5
        loss = loss * scale
    np.testing.assert_array_equal(tape.gradient(loss, weight), [10, 20])
