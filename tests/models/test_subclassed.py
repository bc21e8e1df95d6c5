"""Models whose `call` is Python code."""

import copy
import pickle
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

from pydtconv import Model, layers
from tests.real_keras import import_keras


def make(k):
    class Net(k.Model):
        def __init__(self, width=4):
            super().__init__()
            self.stem = k.layers.Conv2D(width, 3, padding="same")
            self.blocks = []
            self.pool = k.layers.GlobalAveragePooling2D()
            for _ in range(2):
                self.blocks.append(k.layers.Conv2D(width, 3, padding="same"))
            self.norms = {"last": k.layers.BatchNormalization()}

        def call(self, inputs, training=None):
            x = self.stem(inputs)
            for block in self.blocks:
                x = k.layers.add([x, block(x)])
            return self.pool(self.norms["last"](x, training=training))

    return Net


def test_call_builds_and_order_of_weights_is_that_of_keras():
    import pydtconv

    keras = import_keras()
    x = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype("float32")
    ours, theirs = make(pydtconv)(), make(keras)()
    assert not ours.built
    assert ours(x).shape == (2, 4)
    theirs(x)
    assert ours.built
    assert [w.shape for w in ours.weights] == [tuple(w.shape) for w in theirs.weights]
    theirs.set_weights(ours.get_weights())
    np.testing.assert_allclose(ours(x), theirs(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_build_with_a_shape():
    import pydtconv

    model = make(pydtconv)()
    model.build((None, 6, 6, 3))
    assert model.built
    assert len(model.trainable_weights) == 2 * 3 + 2
    assert model.layers[0] is model.stem


def test_training_mode():
    import pydtconv

    model = make(pydtconv)()
    x = np.random.default_rng(0).normal(5, 2, size=(8, 6, 6, 3))
    y = model(x, training=True)
    np.testing.assert_allclose(y.mean(), 0, atol=1e-4)
    assert np.abs(model(x, training=False) - y).max() > 1e-3


def test_no_call():
    class Empty(Model):
        pass

    with pytest.raises(NotImplementedError, match="no call"):
        Empty()(np.ones((1, 2)))


def test_config_from_recorded_arguments():
    class Wide(Model):
        def __init__(self, width, **kwargs):
            super().__init__(**kwargs)
            self.conv = layers.Conv2D(width, 1)

        def call(self, inputs):
            return self.conv(inputs)

    copy = Wide.from_config(Wide(7, name="w").get_config())
    assert copy.conv.filters == 7
    assert copy.name == "w"


def test_not_functional_has_no_inputs():
    import pydtconv

    with pytest.raises(AttributeError, match="symbolic"):
        _ = make(pydtconv)().inputs


@pytest.mark.parametrize(
    ("take_out", "left"),
    [
        (lambda net: net.parts.pop(), 2),
        (lambda net: net.parts.remove(net.parts[0]), 2),
        (lambda net: net.parts.__delitem__(slice(1, 3)), 1),
        (lambda net: net.parts.clear(), 0),
        (lambda net: setattr(net, "parts", net.parts[:2]), 2),
        (lambda net: net.parts.__setitem__(0, net.parts[1]), 2),
    ],
)
def test_layers_that_are_taken_out_of_a_list_are_no_more_of_the_model(take_out, left, tmp_path):
    class Net(Model):
        def __init__(self):
            super().__init__()
            self.parts = [layers.Dense(4, name=f"part_{i}") for i in range(3)]

        def call(self, x):
            for part in self.parts:
                x = part(x)
            return x

    net = Net()
    take_out(net)
    net(np.ones((2, 4), "float32"))
    assert len(net.layers) == left
    if left:
        net.save_weights(tmp_path / "net.weights.h5")


def test_layers_that_are_held_elsewhere_stay():
    class Net(Model):
        def __init__(self):
            super().__init__()
            self.parts = {"a": layers.Dense(4), "b": layers.Dense(4)}
            self.again = [self.parts["a"]]

    net = Net()
    first = net.parts["a"]
    del net.parts["a"]
    assert net.layers == [first, net.parts["b"]]
    assert net.parts.pop("b") not in net.layers
    net.again = None
    assert net.layers == []


def _ordered(model):
    model.held = OrderedDict(a=layers.Dense(2))
    model.held["b"] = layers.Dense(2)
    model.held.move_to_end("a")
    return list(model.held.values())


def _with_defaults(model):
    model.held = defaultdict(list)
    model.held["a"].append(layers.Dense(2))
    model.held["b"] += [layers.Dense(2)]
    return [model.held["a"][0], model.held["b"][0]]


def _named(model):
    model.held = namedtuple("Held", "a b")(layers.Dense(2), [layers.Dense(2)])
    return [model.held.a, model.held.b[0]]


def _of_another_model(model):
    other = Model()
    other.first, other.second = [layers.Dense(2)], {"a": layers.Dense(2)}
    model.first, model.second = other.first, other.second
    return [model.first[0], model.second["a"]]


def _of_a_class_of_ones_own(model):
    class Own(list):
        pass

    model.held = Own([layers.Dense(2), layers.Dense(2)])
    assert type(model.held) is Own
    return model.held


@pytest.mark.parametrize("hold", [_ordered, _with_defaults, _named, _of_another_model, _of_a_class_of_ones_own])
def test_layers_are_found_in_lists_and_dicts_of_all_kinds(hold):
    model = Model()
    found = hold(model)
    assert set(model.layers) == set(found)
    for layer in found:
        layer.build((None, 3))
    assert len(model.trainable_variables) == 4


def test_copies_of_dicts_that_hold_layers_are_plain_ones():
    model = Model()
    model.ordered, model.defaults = OrderedDict(a=1, b=2), defaultdict(int, a=3)
    for held, kind in (model.ordered, OrderedDict), (model.defaults, defaultdict):
        again = (
            pickle.loads(pickle.dumps(held)),
            copy.deepcopy(held),
            copy.copy(held),
            held.copy(),
            held | {},
            {} | held,
        )
        assert all(type(each) is kind and each == held for each in again)
    assert model.defaults["new"] == copy.deepcopy(model.defaults)["other"] == 0


def test_layers_in_a_set_are_refused():
    with pytest.raises(ValueError, match=r"expected layers in a list, a tuple or a dict.*got them in a set"):
        Model().held = {layers.Dense(2)}
