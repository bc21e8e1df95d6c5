"""Constructors against Keras's: names, order and defaults of all arguments that are not listed as lacking."""

import inspect

import pytest

from pydtconv import (
    activations,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    models,
    optimizers,
    regularizers,
)
from tests.real_keras import import_keras

#: arguments that Keras does not have
EXTRA = {
    **{f"SpatialDropout{rank}D": {"kwargs"} for rank in (1, 2, 3)},  # trainable, as all layers
}

LAYERS = [
    name
    for name in layers.__all__
    if inspect.isclass(getattr(layers, name))
    and name not in ("InputSpec", "Layer", "NumpyLayer", "GroupedQueryAttention")
]
OTHERS = [
    (module, name)
    for module in (initializers, regularizers, constraints)
    for name, value in sorted(vars(module).items())
    if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
]


def parameters_of(function, leave_out):
    # that of a class of Keras would be its __new__'s, which takes anything
    constructor = function.__init__ if inspect.isclass(function) else function
    parameters = [p for p in inspect.signature(constructor).parameters.values() if p.name not in leave_out]
    return [(p.name, p.kind, p.default) for p in parameters if p.name != "self"]


@pytest.mark.parametrize("name", [*LAYERS, "Input"])
def test_layer(name):
    keras = import_keras()
    ours = parameters_of(getattr(layers, name), EXTRA.get(name, ()))
    theirs = parameters_of(getattr(keras.layers, name), ())
    if [p[0] for p in theirs] == ["args", "kwargs"]:
        pytest.skip("Keras shows no signature")
    assert ours == theirs


@pytest.mark.parametrize("made", [layers.Conv2D, optimizers.Adam, losses.Huber, callbacks.EarlyStopping])
def test_classes_show_the_signature_of_their_constructor(made):
    shown, own = inspect.signature(made).parameters, inspect.signature(made.__init__).parameters
    assert list(shown) == list(own)[1:]
    assert all(shown[name].default == own[name].default for name in shown)


def test_the_signature_of_a_layer_is_not_that_of_its_class():
    assert list(inspect.signature(layers.Dense(3)).parameters) == ["args", "kwargs"]


@pytest.mark.parametrize("argument", ["lora_rank", "quantization_config"])
def test_what_is_not_supported_is_refused_when_it_is_used(argument):
    with pytest.raises(NotImplementedError, match=f"Dense: {argument}: expected None, got 4"):
        layers.Dense(3, **{argument: 4})
    layers.Dense(3, **{argument: None})


@pytest.mark.parametrize(("module", "name"), OTHERS, ids=[f"{m.__name__.split('.')[-1]}.{n}" for m, n in OTHERS])
def test_object(module, name):
    keras = import_keras()
    theirs = getattr(getattr(keras, module.__name__.split(".")[-1]), name, None)
    if theirs is None and name == "RandomInitializer":
        pytest.skip("Keras does not export this base class")
    assert parameters_of(getattr(module, name), ()) == parameters_of(theirs, ())


def test_all_activations_are_there():
    keras = import_keras()
    for name in dir(keras.activations):
        theirs = getattr(keras.activations, name)
        if inspect.isfunction(theirs):
            assert parameters_of(getattr(activations, name), ()) == parameters_of(theirs, ()), name


@pytest.mark.parametrize("name", ["summary", "get_layer", "compute_output_shape", "load_weights"])
def test_model_method(name):
    keras = import_keras()
    ours = [p[0] for p in parameters_of(getattr(models.Model, name), ())]
    theirs = [p[0] for p in parameters_of(getattr(keras.Model, name), ()) if p[0] not in ("args", "kwargs")]
    assert ours[: len(theirs)] == theirs
