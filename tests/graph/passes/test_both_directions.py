"""Both directions of a recurrent layer at the same time: the bits of one after the other, whatever the threads."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.graph.passes.order import PASSES
from pydtconv.ops.recurrence import BothDirections, Recurrence
from tests.graph.tables import without
from tests.ops.harness import normal

STEPS, UNITS = 4, 20
RNN = layers.RNN
#: layers of a Bidirectional, by what is special, and how many pairs they leave
NETWORKS = {
    "SimpleRNN": (lambda: layers.SimpleRNN(UNITS, return_sequences=True), 1),
    "LSTM": (lambda: layers.LSTM(UNITS, return_sequences=True, return_state=True), 1),
    "GRU": (lambda: layers.GRU(UNITS), 1),
    "GRU, reset before": (lambda: layers.GRU(UNITS, reset_after=False, return_sequences=True), 1),
    "stack": (lambda: RNN([layers.LSTMCell(3), layers.GRUCell(UNITS)], return_sequences=True), 2),
    "float64": (lambda: layers.LSTM(UNITS, dtype="float64"), 1),
    "gelu": (lambda: layers.LSTM(UNITS, activation="gelu"), 0),
}


def network(name, masked=False, frozen=False):
    keras.utils.set_random_seed(5)
    make, pairs = NETWORKS[name]
    inputs = keras.Input((STEPS, 3))
    x = layers.Masking()(inputs) if masked else inputs
    both = layers.Bidirectional(make())
    y = both(x)
    both.backward_layer.trainable = not frozen
    model = keras.Model(inputs, y)
    model.compile(keras.optimizers.SGD(0.1), ["mse"] * len(model.outputs))
    return model, pairs


def trained(model, n):
    x = normal(n, STEPS, 3)
    x[0, 2:] = x[-1, :1] = 0
    targets = [np.ones((n, *y.shape[1:])) for y in model.outputs]
    losses = [model.train_on_batch(x, targets if len(targets) > 1 else targets[0]) for _ in range(2)]
    return [*np.ravel(losses), *model.get_weights(), *keras.tree.flatten(model.predict_on_batch(x))]


def pairs_of(model, n=2):
    return [node for node in model.plan(batch_size=n).graph.nodes if isinstance(node.op, BothDirections)]


@pytest.fixture
def two_threads():
    before = keras.config.num_threads()
    keras.config.set_num_threads(2)
    yield
    keras.config.set_num_threads(before)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("masked", [False, True])
def test_bits_do_not_depend_on_it_or_on_threads(name, masked, monkeypatch, two_threads):
    monkeypatch.setattr("pydtconv.graph.compiler.PASSES", without("both-directions"))
    apart, _ = network(name, masked)
    assert not pairs_of(apart)
    found = {n: trained(network(name, masked)[0], n) for n in (1, 3, 67)}
    monkeypatch.setattr("pydtconv.graph.compiler.PASSES", PASSES)
    for n, threads in ((1, 1), (1, 2), (3, 3), (67, 2), (67, 10)):
        keras.config.set_num_threads(threads)
        model, pairs = network(name, masked)
        assert len(pairs_of(model, n)) == (pairs if threads > 1 and n < 8 * threads else 0)
        for a, b in zip(trained(model, n), found[n], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{n} samples, {threads} threads")


def test_one_direction_may_be_frozen(two_threads):
    model, _ = network("GRU", frozen=True)
    before = model.get_weights()
    assert len(pairs_of(model)) == 1
    trained(model, 3)
    changed = [(a != b).any() for a, b in zip(model.get_weights(), before, strict=True)]
    assert changed == [True] * 3 + [False] * 3


def test_what_depends_on_the_other_or_goes_the_same_way_stays(two_threads):
    inputs = keras.Input((STEPS, UNITS))
    last = layers.GRU(UNITS, return_sequences=True, go_backwards=True)(layers.GRU(UNITS, return_sequences=True)(inputs))
    same = [layers.LSTM(UNITS)(inputs), layers.LSTM(UNITS)(inputs)]
    other = [layers.SimpleRNN(UNITS)(inputs), layers.SimpleRNN(UNITS + 1, go_backwards=True)(inputs)]
    model = keras.Model(inputs, [last, *same, *other])
    kinds = [type(node.op) for node in model.plan(batch_size=2).graph.nodes]
    assert kinds.count(Recurrence) == 6
    assert BothDirections not in kinds
