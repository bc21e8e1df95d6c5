"""What is kept of a model's structure is found anew when that changes."""

import copy
import gc
import pickle
import weakref

import numpy as np

import pydtconv as keras
from pydtconv import layers
from pydtconv.layers.base.locks import turn_of


def model_of(*units):
    return keras.Sequential([keras.Input((3,)), *(layers.Dense(n) for n in units)])


def names(model):
    return [id(variable) for variable in model.weights]


def test_weights_follow_layers_that_come_and_go():
    model = model_of(2)
    one = model.layers[0]
    assert len(model.weights) == 2
    other = layers.Dense(4)
    model.add(other)
    assert names(model) == [id(v) for layer in (one, other) for v in layer.weights]
    model.pop()
    assert names(model) == [id(v) for v in one.weights]
    one.extra = layers.Dense(1)
    one.extra.build((None, 3))
    assert len(model.weights) == 4
    one.extra = None
    assert len(model.weights) == 2
    one.add_weight((5,), name="more")
    assert len(model.weights) == 3
    one.trainable = False
    assert model.trainable_weights == []
    assert len(model.weights) == 3


def test_dicts_that_are_joined_in_place_tell_of_their_layers():
    layer = layers.Dense(2)
    layer.parts = {"a": layers.Dense(1)}
    parts = layer.parts
    parts |= {"b": layers.Dense(1)}
    layer.parts |= {"a": layers.Dense(3)}
    assert {id(part) for part in layer._pydt_layers} == {id(part) for part in layer.parts.values()}


def test_what_is_given_out_may_be_changed():
    model = model_of(2)
    model.weights.clear()
    assert len(model.weights) == 2


def test_a_copy_has_its_own():
    model = model_of(2, 3)
    assert len(model.weights) == 4
    other = copy.deepcopy(model)
    assert not set(names(model)) & set(names(other))
    assert turn_of(model) is turn_of(model.layers[1])
    assert turn_of(other) is turn_of(other.layers[1])
    assert turn_of(other) is not turn_of(model)


def test_models_that_come_to_share_a_layer_take_turns():
    first, second = model_of(3), model_of(2)
    assert turn_of(first) is not turn_of(second)
    third = keras.Sequential([keras.Input((3,)), first.layers[0], second])
    assert turn_of(third) is turn_of(first)
    assert turn_of(third) is turn_of(second)


def test_metrics_that_become_attributes_between_steps():
    model = model_of(2)
    model.compile("sgd", "mse")
    x, y = np.ones((4, 3), "float32"), np.zeros((4, 2), "float32")
    assert list(model.train_on_batch(x, y, return_dict=True)) == ["loss"]
    model.layers[0].seen = keras.metrics.Mean(name="seen")
    assert list(model.train_on_batch(x, y, return_dict=True)) == ["loss", "seen"]
    model.layers[0].trainable = False
    before = model.get_weights()
    model.add(layers.Dense(2))
    model.compile("sgd", "mse")
    model.train_on_batch(x, y)
    for old, new in zip(before, model.get_weights(), strict=False):
        np.testing.assert_array_equal(old, new)


def test_a_loss_as_a_number_counts_as_an_array_does():
    one, other = keras.metrics.Mean(), keras.metrics.Mean()
    for value, samples in ((0.1, 3), (0.7, 5)):
        one.update_state(value, sample_weight=samples)
        other.update_state(np.array(value), sample_weight=np.array(samples))
    assert one.result() == other.result()


class Named(layers.Layer):
    """Equal to others of its kind, as layers of a user may be."""

    def __init__(self):
        super().__init__()
        self.inside = layers.Dense(2)

    def call(self, x):
        return self.inside(x)

    def __eq__(self, other):
        return isinstance(other, Named)

    def __hash__(self):
        return 1


def test_layers_that_are_equal_have_their_own():
    one, other = Named(), Named()
    for layer in (one, other):
        layer(np.ones((1, 3), "float32"))
    assert not set(names(one)) & set(names(other))
    assert turn_of(one) is not turn_of(other)


def test_a_shallow_copy_finds_its_own():
    layer = Named()
    layer(np.ones((1, 3), "float32"))
    assert len(layer.weights) == 2
    other = copy.copy(layer)
    other.inside = None
    assert len(layer.weights) == 2
    assert other.weights == []
    assert pickle.loads(pickle.dumps(layer)).weights[0] is not layer.weights[0]


def test_a_model_that_its_metric_refers_to_is_freed():
    model = model_of(2)
    model.seen = keras.metrics.Mean(name="seen")
    model.seen.model = model
    model.compile("sgd", "mse")
    model.train_on_batch(np.ones((4, 3), "float32"), np.zeros((4, 2), "float32"))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
