"""Private names in users' subclasses: each name that a base class could have is like any other name.

The names are found by walking the base classes and trained instances, so that new ones are covered.
"""

import copy
import functools
import pickle

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 4)).astype("float32"), RNG.standard_normal((12, 3)).astype("float32")

#: Keras's, which subclasses of its optimizers call and write
KERAS = {"_apply_weight_decay", "_get_variable_index", "_overwrite_variable_with_gradient", "_use_weight_decay"}
#: names of the Model's own that are plain words, and that Keras's Model has not
WORDS = ("position", "overrides", "order_of", "input_dtypes", "total_loss", "track_losses", "track_output_losses")


class Plain(layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(4)

    def call(self, x):
        return self.inner(x)


class Written(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(3)

    def call(self, x):
        return self.inner(x)


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return X[4 * index : 4 * index + 4], Y[4 * index : 4 * index + 4]


def flat_loss(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


def objects():
    """Base class -> instances that were trained."""
    inputs = keras.Input((4,))
    plain = Plain()
    chain = keras.Sequential([plain, layers.Dense(3)])
    graph = keras.Model(inputs, layers.Dense(3)(inputs))
    models, callback = [Written(), chain, graph], keras.callbacks.LambdaCallback()
    for model in models:
        loss, metric = keras.losses.MeanSquaredError(), keras.metrics.MeanMetricWrapper(flat_loss)
        model.compile(keras.optimizers.SGD(0.1, weight_decay=0.1), loss, metrics=[metric])
        model.fit(Batches(workers=2), verbose=0, callbacks=[callback])
        model.evaluate(X, Y, verbose=0)
        model.predict(X, verbose=0)
        with keras.profiling.Profiler(model):
            model.train_on_batch(X, Y)
    plain(X)
    return {
        keras.Model: models,
        layers.Layer: [plain, *chain.layers],
        keras.callbacks.Callback: [callback],
        keras.metrics.Metric: [metric],
        keras.losses.Loss: [loss],
        keras.optimizers.Optimizer: [model.optimizer],
        keras.initializers.Initializer: [keras.initializers.Zeros()],
        keras.regularizers.Regularizer: [keras.regularizers.L2()],
        keras.constraints.Constraint: [keras.constraints.NonNeg()],
        keras.utils.PyDataset: [Batches()],
    }


@functools.cache
def all_names():
    """Base class -> the private names of the class and its objects, as users would write them."""
    found = {}
    for base, instances in objects().items():
        private = {name for name in {*dir(base)}.union(*map(dir, instances)) if name[:1] == "_" and name[:2] != "__"}
        found[base] = sorted({"_" + name.removeprefix("_pydt_").lstrip("_") for name in private} - KERAS)
    found[keras.Model] += WORDS
    found[layers.Layer] = found[keras.Model]  # which are looked for in layers, too
    return found


def method(self, x):
    return x * 1.0


#: kind -> what an object holds under a name
KINDS = {
    "number": lambda: 1.5,
    "layer": lambda: layers.Dense(3, use_bias=False, kernel_initializer="identity"),
    "list": lambda: [layers.Dense(3, use_bias=False, kernel_initializer="identity")],
    "method": None,
}


def used(self, kind, given, y):
    """y after all that the object holds under the names."""
    for name in given:
        value = getattr(self, name)
        if kind in ("layer", "list"):
            y = value(y) if kind == "layer" else value[0](y)
        else:
            y = value(y) if kind == "method" else y * (value - 0.5)
    return y


def subclass(base, kind, prefix, members, start=None):
    """A class of a user's with all private names of the base, or with `prefix` before each of them."""
    known = all_names()
    given = [prefix + name for name in known[next(each for each in base.__mro__ if each in known)]]

    def __init__(self, *args, **kwargs):
        (start or base.__init__)(self, *args, **kwargs)
        for name in given if kind != "method" else ():
            setattr(self, name, KINDS[kind]())

    methods = dict.fromkeys(given, method) if kind == "method" else {}
    cls = type(f"Own_{base.__name__}_{kind}{prefix}", (base,), {"__init__": __init__, **methods, **members(given)})
    cls.__module__ = __name__
    globals()[cls.__name__] = cls  # where pickle finds it
    return cls


def calling(base, kind, prefix):
    """A class that has a layer, and what the names hold, in its `call`."""

    def start(self, **kwargs):
        base.__init__(self, **kwargs)
        self.first = layers.Dense(3)

    def members(given):
        return {"call": lambda self, x: used(self, kind, given, self.first(x))}

    return subclass(base, kind, prefix, members, start)


def own_layer(kind, prefix):
    cls = calling(layers.Layer, kind, prefix)
    return cls, lambda: keras.Sequential([keras.Input((4,)), cls(), layers.Dense(3)])


def own_model(kind, prefix):
    cls = calling(keras.Model, kind, prefix)
    return cls, cls


def own_sequential(kind, prefix):
    cls = subclass(keras.Sequential, kind, prefix, lambda given: {})
    return cls, lambda: cls([keras.Input((4,)), layers.Dense(3)])


def results(made, prefix, folder):
    """What a model of these classes gives, from training to files and copies."""
    cls, make = made
    scope = {cls.__name__: cls}

    def new():
        keras.utils.set_random_seed(0)
        model = make()
        model.compile(keras.optimizers.SGD(0.001), "mse", metrics=["mae"])
        return model

    def fit(model, epochs):
        backup = keras.callbacks.BackupAndRestore(folder / f"backup{prefix}", delete_checkpoint=False)
        return model.fit(X, Y, batch_size=4, epochs=epochs, verbose=0, callbacks=[backup]).history

    model = new()
    found = [fit(model, 1), fit(new(), 2)]  # the second one goes on from the first one's backup
    found += [model.evaluate(X, Y, verbose=0), model.train_on_batch(X, Y), model.summary(print_fn=lambda line: None)]
    found += [model.predict(X, verbose=0), model(X), len(model.weights), model.count_params()]
    found += [len(model.layers), sorted(model.get_config()), sorted(loss.shape for loss in model.losses)]
    model.save(folder / f"m{prefix}.keras")
    model.save_weights(folder / f"m{prefix}.weights.h5")
    loaded = keras.saving.load_model(folder / f"m{prefix}.keras", custom_objects=scope)
    filled = new()
    filled.build((None, 4))
    filled.load_weights(folder / f"m{prefix}.weights.h5")
    others = [loaded, filled, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for other in others:
        np.testing.assert_array_equal(other.predict(X, verbose=0), model.predict(X, verbose=0))
    assert all(len(other.weights) == len(model.weights) for other in others)
    return [*found, *model.get_weights()]


CASES = [(own, kind) for own in (own_layer, own_model) for kind in KINDS]
CASES += [(own_sequential, kind) for kind in ("number", "method")]  # its layers are those that are added to it
SLOW = [(own_layer, "list"), (own_model, "layer"), (own_model, "list")]


@pytest.mark.parametrize(
    ("own", "kind"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case in SLOW else (), id=f"{case[0].__name__}-{case[1]}")
        for case in CASES
    ],
)
def test_layers_and_models(own, kind, tmp_path):
    one, other = (results(own(kind, prefix), prefix, tmp_path) for prefix in ("", "other"))
    for a, b in zip(one, other, strict=True):
        if isinstance(a, dict):
            assert a == b
        else:
            np.testing.assert_array_equal(a, b)


class Rate(keras.optimizers.Optimizer):
    """Written variable by variable, as for Keras."""

    def update_step(self, gradient, variable, learning_rate):
        self._get_variable_index(variable)
        self.assign_sub(variable, gradient * learning_rate)


def distance(self, y_true, y_pred):
    return flat_loss(y_true, y_pred)


PLAIN = {"get_config": lambda self: {}}
#: classes of objects that a model is trained with -> what a subclass must have
OTHERS = {
    keras.callbacks.Callback: {},
    keras.metrics.MeanMetricWrapper: {},
    keras.losses.Loss: {"call": distance},
    keras.optimizers.AdamW: {},
    Rate: {},
    keras.initializers.Initializer: {**PLAIN, "__call__": lambda self, shape, dtype=None: np.full(shape, 0.1, dtype)},
    keras.regularizers.Regularizer: {**PLAIN, "__call__": lambda self, x: 0.1 * ops.sum(ops.square(x))},
    keras.constraints.Constraint: {**PLAIN, "__call__": lambda self, w: ops.clip(w, -0.2, 0.2)},
    keras.utils.PyDataset: {"__len__": Batches.__len__, "__getitem__": Batches.__getitem__},
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_model_is_trained_with(kind, tmp_path):
    def run(prefix):
        keras.utils.set_random_seed(0)
        own = {base: subclass(base, kind, prefix, lambda given, m=members: m) for base, members in OTHERS.items()}
        of = {base.__name__: cls for base, cls in own.items()}
        model = keras.Sequential(
            [
                keras.Input((4,)),
                layers.Dense(
                    3,
                    kernel_initializer=of["Initializer"](),
                    kernel_regularizer=of["Regularizer"](),
                    kernel_constraint=of["Constraint"](),
                ),
            ]
        )
        found = []
        for optimizer in (of["AdamW"](0.1, use_ema=True, clipnorm=1.0), of["Rate"](0.1, weight_decay=0.1)):
            model.compile(optimizer, of["Loss"](), metrics=[of["MeanMetricWrapper"](flat_loss)])
            data, callback = of["PyDataset"](workers=2), of["Callback"]()
            found.append(model.fit(data, epochs=2, verbose=0, callbacks=[callback]).history)
            assert callback.model is model
            found.append(model.evaluate(X, Y, verbose=0))
            found += model.get_weights()
            other = pickle.loads(pickle.dumps(copy.deepcopy(model)))
            found += [other.train_on_batch(X, Y), *other.get_weights(), *[v.numpy() for v in other.optimizer.variables]]
        model.save(tmp_path / f"m{prefix}.keras")
        return found

    for a, b in zip(run(""), run("other"), strict=True):
        if isinstance(a, dict):
            assert a == b
        else:
            np.testing.assert_array_equal(a, b)


BASES = (
    keras.Model,
    layers.Layer,
    keras.callbacks.Callback,
    keras.metrics.Metric,
    keras.losses.Loss,
    keras.optimizers.Optimizer,
)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_the_packages_names_are_refused_by_name(base):
    with pytest.raises(TypeError, match=r"class Own: expected a name that does not begin with '_pydt_'.*_pydt_step"):
        type("Own", (base,), {"_pydt_step": method, "__module__": __name__})
    if issubclass(base, layers.Layer):
        with pytest.raises(AttributeError, match=r"Own: expected a name that does not begin with '_pydt_'.*_pydt_step"):
            type("Own", (base,), {})()._pydt_step = 1


def test_pickles_with_the_names_of_before():
    for model in objects()[keras.Model]:
        model.reset_metrics()
        older = pickle.dumps(model, protocol=0).replace(b"_pydt_", b"_")
        assert b"_layers" in older
        other = pickle.loads(older)
        assert not [name for name in vars(other) if name[0] == "_" and not name.startswith("_pydt_")]
        for each in (model, other):
            each.train_on_batch(X, Y)
        for one, another in zip(model.variables, other.variables, strict=True):
            np.testing.assert_array_equal(one.numpy(), another.numpy())
        assert model.evaluate(X, Y, verbose=0) == other.evaluate(X, Y, verbose=0)


def test_private_names_that_code_for_keras_reads():
    inner = layers.Dense(3)
    model = keras.Sequential([keras.Input((4,)), keras.Sequential([inner])])
    assert inner in model._flatten_layers()
    assert len(inner._inbound_nodes) == 1
    assert model._loss_tracker is model._pydt_loss_tracker
