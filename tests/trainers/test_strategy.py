"""What training hands to the strategy that is active."""

from contextlib import contextmanager

import numpy as np
import pytest

from pydtconv import Input, Model, Sequential, layers, replica
from pydtconv.trainers import strategy
from pydtconv.trainers.strategy import Strategy
from pydtconv.trainers.training import Training


class Noting(Strategy):
    """Notes what it is handed, and goes on as one that is alone."""

    def __init__(self):
        self.calls = []

    def prepare(self, training, kind, data, single=False):
        self.calls.append(("prepare", training, kind, data.samples))

    @contextmanager
    def running(self, training, kind, batch, step):
        self.calls.append(("running", training, kind, batch.total))
        assert step.executor.plan.backward_start > 0
        yield

    def apply(self, optimizer, store):
        self.calls.append(("apply", optimizer, store))
        super().apply(optimizer, store)

    def note(self, training, batch, results):
        self.calls.append(("note", training, batch.total, results.loss))
        return super().note(training, batch, results)


@pytest.fixture
def noting():
    found = Noting()
    replica.set_current(found)
    yield found
    replica.set_current(None)


def small_model():
    model = Sequential([layers.Input((3,)), layers.Dense(2, name="dense")])
    model.compile("sgd", "mse", weighted_metrics=["mae"])
    return model


def test_a_training_step_is_handed_over_in_its_order(noting):
    noting.reads_gradients = True
    model = small_model()
    loss = model.train_on_batch(np.ones((4, 3)), np.zeros((4, 2)), sample_weight=np.arange(4.0))[0]
    (_, training, *prepared), (_, second, *running), (_, optimizer, store), (_, third, *noted) = noting.calls
    assert training is second is third
    assert prepared == running == ["train", 4]
    assert noted == [4, loss]
    assert optimizer is model.optimizer
    assert store is training.memory.store


def test_what_it_sees_of_a_model(noting):
    model = small_model()
    model.train_on_batch(np.ones((4, 3)), np.zeros((4, 2)))
    training = noting.calls[0][1]
    assert isinstance(training, Training)
    assert [variable.path for variable in training.variables] == [variable.path for variable in model.variables]
    assert training.layers == model.layers
    assert [(output.name, output.loss.name) for output in training.outputs] == [("dense", "mean_squared_error")]
    assert [metric.name for metric in training.metrics] == ["mae"]
    assert training.results() == model.get_metrics_result()


def test_alone_without_one():
    assert type(strategy.current()) is Strategy
    replica.set_current(replica.Replica())
    try:
        assert type(strategy.current()) is Strategy
    finally:
        replica.set_current(None)


class Several(replica.Replica):
    size = 2


@pytest.mark.parametrize("renorm", [False, True])
def test_normalization_of_masked_inputs_and_renorm_by_several_processes_are_refused(renorm):
    inputs = Input((5, 3))
    x = layers.BatchNormalization(name="norm", renorm=renorm)(inputs if renorm else layers.Masking()(inputs))
    model = Model(inputs, layers.Dense(1)(layers.Flatten()(x)))
    model.compile("sgd", "mse")
    replica.set_current(Several())
    try:
        with pytest.raises(NotImplementedError, match=r"'norm/\w+'.* batch normalization with renorm or a mask"):
            model.train_on_batch(np.ones((4, 5, 3)), np.ones((4, 1)))
    finally:
        replica.set_current(None)
