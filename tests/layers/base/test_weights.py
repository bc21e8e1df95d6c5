"""What a layer tracks, and in which order: attributes of all kinds, set before and after super().__init__().

Expected are the weights and layers of Keras 3.15 with JAX.
"""

import h5py
import numpy as np
import pytest

import pydtconv
from pydtconv import layers, metrics


def _layer(me):
    me.a, me.b = _dense(2, "a"), _dense(3, "b")


def _list(me):
    me.held = [_dense(2, "a"), _dense(3, "b")]


def _appended(me):
    me.held = []
    me.held.append(_dense(2, "a"))
    me.held += [_dense(3, "b")]


def _nested(me):
    me.held = {"x": [_dense(2, "a")], "y": (_dense(3, "b"),)}


def _replaced(me):
    me.a = _dense(7, "old")
    me.a = _dense(2, "a")


def _deleted(me):
    me.a = _dense(7, "old")
    del me.a
    me.b = _dense(3, "b")


def _variables(me):
    me.free = pydtconv.Variable(np.ones(5, "float32"), name="free")
    me.others = [pydtconv.Variable(np.ones(6, "float32"), trainable=False, name="fixed")]


def _metric(me):
    me.metric, me.number = metrics.Mean(name="mean"), 3


def _dense(units, name):
    return layers.Dense(units, name=name)


def _held(me):
    values = [getattr(me, name, ()) for name in ("a", "b", "held")]
    return [each for value in values for each in pydtconv.tree.flatten(value)]


def _subclass(base, put, before):
    """A class of a layer or model that sets attributes before or after super().__init__()."""

    class Own({"Layer": layers.Layer, "Sequential": pydtconv.Sequential}.get(base, pydtconv.Model)):
        def __init__(self, **kwargs):
            if before:
                put(self)
            self._start(**kwargs)
            if not before:
                put(self)

        def _start(self, **kwargs):
            super().__init__(**kwargs)
            self.middle = _dense(4, "middle")

        def call(self, x):
            for each in _held(self):
                x = each(x)
            return self.middle(x)

    class Chain(Own):
        call = pydtconv.Sequential.call

        def _start(self, **kwargs):
            pydtconv.Sequential.__init__(self, [_dense(4, "middle")], **kwargs)

    class Functional(Own):
        call = pydtconv.Model.call

        def _start(self, **kwargs):
            y = x = layers.Input((3,))
            for each in reversed(_held(self)):
                y = each(y)
            pydtconv.Model.__init__(self, x, _dense(4, "middle")(y), **kwargs)

    return {"Sequential": Chain, "Functional": Functional}.get(base, Own)


#: kind of attribute, the names of its layers, whether variables and a metric come with it
PUTS = [
    (_layer, "ab"), (_list, "ab"), (_appended, "ab"), (_nested, "ab"), (_replaced, "a"), (_deleted, "b"),
    (_variables, ""), (_metric, ""),
]  # fmt: skip
BASES = ["Layer", "Model", "Sequential", "Functional"]


@pytest.mark.parametrize("trainable", [True, False])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("put", "names"), PUTS, ids=[put.__name__[1:] for put, _ in PUTS])
def test_attributes_before_and_after_init(base, put, names, before, trainable):
    model = _subclass(base, put, before)(trainable=trainable)
    model(np.ones((2, 3), "float32"))
    order = [*names, "middle"] if before else ["middle", *names]
    built = ["middle"] if base == "Sequential" or (base == "Functional" and not before) else order
    own = ["free", "fixed"] if put is _variables else []
    assert [w.path.split("/")[-2] if "/" in w.path else w.name for w in model.weights] == [
        *own,
        *(name for name in built for _ in range(2)),
    ]
    assert len(model.trainable_weights) == trainable * (2 * len(built) + (put is _variables))
    assert model.trainable is trainable
    assert [metric.name for metric in model.metrics] == ["mean"] * (put is _metric)


@pytest.mark.parametrize(("put", "names"), PUTS[:4], ids=[put.__name__[1:] for put, _ in PUTS[:4]])
def test_what_is_set_before_init_is_trained_and_saved(put, names, tmp_path):
    x, y = np.ones((4, 3), "float32"), np.ones((4, 4), "float32")
    kind = _subclass("Model", put, before=True)
    model, other = kind(), kind()
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    other(x)
    start = kind()
    start(x)
    start.set_weights(model.get_weights())
    model.fit(x, y, verbose=0)
    assert all((a != b).any() for a, b in zip(start.get_weights(), model.get_weights(), strict=True))
    model.save_weights(tmp_path / "x.weights.h5")
    other.load_weights(tmp_path / "x.weights.h5")
    assert all((a == b).all() for a, b in zip(other.get_weights(), model.get_weights(), strict=True))


def test_an_attribute_of_a_sequential_is_no_part_of_its_chain():
    first = _dense(2, "first")

    class Chain(pydtconv.Sequential):
        def __init__(self):
            self.first, self.other = first, _dense(5, "other")
            super().__init__([first])

    model = Chain()
    del model.first
    assert model(np.ones((1, 3), "float32")).shape == (1, 2)
    assert model.layers == [first]


def test_super_init_is_asked_for():
    class Forgot(layers.Layer):
        def __init__(self):
            self.inner = layers.ReLU()

    class Early(layers.Layer):
        def __init__(self):
            self.w = self.add_weight((1,))
            super().__init__()

    with pytest.raises(RuntimeError, match="super"):
        Forgot()(np.ones(2))
    with pytest.raises(RuntimeError, match="super"):
        Early()
    for ask in (lambda x: x.name, repr, lambda x: x.get_config(), lambda x: x.count_params()):
        with pytest.raises(RuntimeError, match=r"Forgot\.__init__ must call super"):
            ask(Forgot())


def test_errors_of_a_property_stay_visible():
    class Own(layers.Layer):
        def __init__(self):
            self.inner = layers.ReLU()
            assert self.inner is not None
            super().__init__()

        @property
        def broken(self):
            return self.not_there

    with pytest.raises(AttributeError, match="not_there"):
        Own().broken  # noqa: B018


def test_layers_of_a_graph_come_in_its_order_whatever_was_set_first(tmp_path):
    """Weights come as attributes were set, layers and files as they are called, as in Keras on TensorFlow."""

    class Model(pydtconv.Model):
        def __init__(self):
            self.last, self.first, self.aside = (layers.Dense(3, name=name) for name in ("last", "first", "aside"))
            self.aside.build((None, 3))
            x = layers.Input((3,))
            super().__init__(x, self.last(self.first(x)))

    model = Model()
    assert [layer.name for layer in model.layers[1:]] == ["first", "last", "aside"]
    assert [weight.path for weight in model.weights[::2]] == ["last/kernel", "first/kernel", "aside/kernel"]
    model.save_weights(tmp_path / "x.weights.h5")
    with h5py.File(tmp_path / "x.weights.h5") as file:
        for name, layer in {"dense": model.first, "dense_1": model.last}.items():
            np.testing.assert_array_equal(file[f"layers/{name}/vars/0"], layer.get_weights()[0])
