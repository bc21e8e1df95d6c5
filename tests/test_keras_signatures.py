"""Every class and function that Keras and pydtconv both have: the names, order, kinds and defaults of its arguments."""

import importlib
import inspect
import warnings

import pytest

import pydtconv
from pydtconv import callbacks, layers, losses, optimizers
from tests.real_keras import import_keras

MODULES = (
    "", "activations", "applications", "backend", "callbacks", "config", "constraints", "datasets.cifar10",
    "datasets.cifar100", "datasets.fashion_mnist", "datasets.mnist", "distribution", "initializers", "layers", "losses",
    "metrics", "models", "ops", "ops.image", "ops.linalg", "ops.nn", "ops.numpy", "optimizers",
    "optimizers.schedules", "preprocessing",
    "preprocessing.image", "preprocessing.sequence", "random", "regularizers", "saving", "tree", "utils",
)  # fmt: skip

#: (name, argument): why it differs
ACCEPTED = {
    ("optimizers", "name"): "Keras's is the class's; ours tells two optimizers of one class apart",
    ("Optimizer", "learning_rate"): "ours has a default, so that a subclass need not repeat one",
    ("Progbar", "interval"): "0.05 seconds where a terminal is drawn, 30 between lines of a log",
    ("save_weights", "max_shard_size"): "one file",
    ("device", "device_name"): "passed by place",
    ("device", "name"): "passed by place",
    ("get_registered_object", "module_objects"): "a module's own table of classes is not looked at",
}


def arguments(value):
    """{name: parameter} of what can be passed by name."""
    function = value.__init__ if inspect.isclass(value) else value
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    ways = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {name: p for name, p in parameters.items() if p.kind not in ways and name != "self"}


def same(ours, theirs):
    if callable(ours) and callable(theirs):
        return True
    if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
        return list(ours) == list(theirs)
    return (
        ours is theirs
        or (type(ours) is type(theirs) and ours == theirs)
        or (ours == theirs and type(theirs) is not bool)
    )


def differences(module, name, ours, theirs):
    """[(argument, what differs)]"""
    if ours is None or theirs is None:
        return []
    found = [(key, "missing") for key in theirs if key not in ours]
    for key in [key for key in theirs if key in ours]:
        mine, wanted = ours[key], theirs[key]
        if not same(mine.default, wanted.default):
            found.append((key, f"{mine.default!r} for {wanted.default!r}"))
        if mine.kind != wanted.kind:
            found.append((key, f"{mine.kind.description} for {wanted.kind.description}"))
    found += [(key, "required by us alone") for key, p in ours.items() if key not in theirs and p.default is p.empty]
    shared = [key for key in theirs if key in ours], [key for key in ours if key in theirs]
    found += [("order", shared)] if shared[0] != shared[1] else []
    kind = module.split(".")[0]
    return [(key, told) for key, told in found if (name, key) not in ACCEPTED and (kind, key) not in ACCEPTED]


@pytest.mark.parametrize("module", MODULES, ids=lambda name: name or "keras")
def test_arguments_are_those_of_keras(module):
    import_keras()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = importlib.import_module(f"keras.{module}".rstrip("."))
        ours = importlib.import_module(f"pydtconv.{module}".rstrip("."))
        found, compared = {}, 0
        for name in dir(theirs):
            known, own = getattr(theirs, name), getattr(ours, name, None) if not name.startswith("_") else None
            if inspect.ismodule(known) or not callable(known) or not callable(own):
                continue
            compared += 1
            told = differences(module, name, arguments(own), arguments(known))
            if told:
                found[name] = told
    assert not found
    assert compared > 0


@pytest.mark.parametrize("name", ["summary", "get_layer", "compute_output_shape", "load_weights"])
def test_arguments_of_methods_are_those_of_keras(name):
    ours, theirs = (list(arguments(getattr(made.Model, name))) for made in (pydtconv, import_keras()))
    assert ours[: len(theirs)] == theirs


@pytest.mark.parametrize("made", [layers.Conv2D, optimizers.Adam, losses.Huber, callbacks.EarlyStopping])
def test_classes_show_the_signature_of_their_constructor(made):
    shown, own = inspect.signature(made).parameters, inspect.signature(made.__init__).parameters
    assert list(shown) == list(own)[1:]
    assert all(shown[name].default == own[name].default for name in shown)


def test_the_signature_of_a_layer_is_not_that_of_its_class():
    assert list(inspect.signature(layers.Dense(3)).parameters) == ["args", "kwargs"]
