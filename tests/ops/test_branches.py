"""Branches that a value chooses from when the step runs only compute."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops


@pytest.mark.parametrize("choose", [ops.cond, lambda pred, a, b: ops.switch(ops.cast(pred, "int32"), [b, a])])
@pytest.mark.parametrize("what", ["assign", "apply", "update"])
def test_what_a_traced_branch_changes_is_refused(choose, what):
    v, optimizer, metric = pydtconv.Variable(0.0), pydtconv.optimizers.SGD(0.1), pydtconv.metrics.Mean()
    optimizer.build([v])

    def change(x):
        if what == "assign":
            v.assign_add(1.0)
        elif what == "apply":
            optimizer.apply([x], [v])
        else:
            metric.update_state(x)
        return x * 2.0

    step = pydtconv.function(lambda x: choose(x > 0, lambda: change(x), lambda: x * 3.0))
    with pytest.raises(NotImplementedError, match="branch of cond or switch"):
        step(np.float32(1.0))
    pure = pydtconv.function(lambda x: choose(x > 0, lambda: x * 2.0, lambda: x * 3.0))
    assert (float(pure(np.float32(1.0))), float(pure(np.float32(-1.0))), float(v)) == (2.0, -3.0, 0.0)
    assert float(choose(np.bool_(True), lambda: change(np.float32(1.0)), lambda: 0.0)) == 2.0


def test_a_layer_whose_branch_assigns_is_refused():
    class Counting(layers.Layer):
        def build(self, shape):
            self.count = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x):
            return ops.cond(ops.sum(x) > 0, lambda: x + self.count.assign_add(1.0), lambda: x)

    with pytest.raises(NotImplementedError, match="branch of cond or switch"):
        Counting()(pydtconv.Input((2,)))


@pytest.mark.parametrize("eager", [False, True])
def test_a_step_that_runs_as_python_takes_one_branch(eager):
    class Model(pydtconv.Model):
        def train_step(self, data):
            self.calls.assign_add(1.0)
            ops.cond(self.calls > 1.0, lambda: self.taken.assign_add(1.0), lambda: self.other.assign_add(1.0))
            return {"loss": 0.0}

    x = pydtconv.Input((2,))
    model = Model(x, layers.Dense(1)(x))
    model.calls, model.taken, model.other = (pydtconv.Variable(0.0, trainable=False) for _ in range(3))
    model.compile("sgd", "mse", run_eagerly=eager)
    if not eager:
        with pytest.raises(NotImplementedError, match="branch of cond or switch"):
            model.fit(np.ones((6, 2)), np.ones((6, 1)), batch_size=2, verbose=0)
        return
    model.fit(np.ones((6, 2)), np.ones((6, 1)), batch_size=2, verbose=0)
    assert [float(v) for v in (model.calls, model.taken, model.other)] == [3.0, 2.0, 1.0]
