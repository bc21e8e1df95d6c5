"""Clones of models, and models of their configs."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pydtconv import tree
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor, Operation
from pydtconv.layers.input_layer import Input, InputLayer
from pydtconv.models.model import Functional, Model
from pydtconv.models.sequential import Sequential
from pydtconv.serialization.objects import deserialize_keras_object


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The model of `Model.to_json`'s text, with new weights."""
    return deserialize_keras_object(json.loads(json_string), custom_objects)


def clone_model(
    model: Model,
    input_tensors: Any = None,
    clone_function: Callable[[Layer], Layer] | None = None,
    call_function: Callable[..., Any] | None = None,
    recursive: bool = False,
    **kwargs: Any,
) -> Any:
    """A model of the same class with new layers of equal configs, and new weights, compiled as the model is.

    clone_function: makes the copy of a layer (all but input layers).  recursive: whether that makes the layers inside
    models among the layers, instead of these models.  call_function(operation, *args, **kwargs): calls the copies, of
    functional models.  input_tensors: symbolic tensors, in the structure of the model's inputs, that are the clone's.
    Raises ValueError for subclassed models without clones of their layers, and for arguments that go with
    another kind of model.
    """
    if kwargs:
        raise ValueError(f"clone_model: unknown arguments: {', '.join(map(repr, kwargs))}")
    if call_function is not None and (isinstance(model, Sequential) or model._pydt_network is None):
        raise ValueError(f"clone_model: call_function: expected a functional model, got {model!r}")
    made = clone_function or _clone_layer

    def clone(layer: Layer) -> Any:
        if not recursive or not isinstance(layer, (Sequential, Functional)):
            return made(layer)
        called = call_function if isinstance(layer, Functional) else None
        return clone_model(layer, clone_function=made, call_function=called, recursive=True)

    if isinstance(model, Sequential):
        first = [] if model._pydt_input_layer is None else [_clone_layer(model._pydt_input_layer)]
        if input_tensors is not None:
            (tensor,) = _checked_inputs(tree.flatten(input_tensors), [None])
            first = [InputLayer(batch_shape=tensor.shape, dtype=tensor.dtype, name=tensor.name)]
        of = {layer: clone(layer) for layer in dict.fromkeys(model.layers)}  # one that stands there twice is one
        return _like(model, Sequential([*first, *(of[layer] for layer in model.layers)], name=model.name))
    network = model._pydt_network
    as_usual = clone_function is None and call_function is None and input_tensors is None
    if network is None or (as_usual and type(model).get_config is not Model.get_config):
        return model.from_config(model.get_config())
    if input_tensors is None:
        inputs = tree.map_structure(lambda x: Input(batch_shape=x.shape, dtype=x.dtype, name=x.name), network.inputs)
    else:
        inputs = _checked_inputs(input_tensors, network.inputs)
    copies: dict[Operation, Any] = {}
    values: dict[KerasTensor, Any] = dict(zip(network.flat_inputs, tree.flatten(inputs), strict=True))
    for node in network.nodes:
        if node.is_input:
            continue
        if node.operation not in copies:
            copies[node.operation] = _copy_of(node.operation, clone)
        args, kw = tree.map_structure(
            lambda x: values[x] if isinstance(x, KerasTensor) else x, (node.args, node.kwargs)
        )
        called = copies[node.operation] if call_function is None else partial(call_function, copies[node.operation])
        results = tree.flatten(called(*args, **kw))
        values.update(zip(node.output_tensors, results, strict=True))
    outputs = tree.map_structure(values.__getitem__, network.outputs)
    kind = type(model) if type(model).__init__ is Model.__init__ else Functional
    return _like(model, kind(inputs=inputs, outputs=outputs, name=model.name))


def _checked_inputs(given: Any, wanted: Any) -> Any:
    """input_tensors.  Raises ValueError for another structure, and for what is no symbolic tensor."""
    single = isinstance(wanted, (list, tuple)) and len(wanted) == 1 and isinstance(given, KerasTensor)
    given = type(wanted)([given]) if single else given
    keys = [sorted(each) if isinstance(each, dict) else len(tree.flatten(each)) for each in (given, wanted)]
    if keys[0] != keys[1] or not all(isinstance(leaf, KerasTensor) for leaf in tree.flatten(given)):
        raise ValueError(
            "clone_model: input_tensors: expected symbolic tensors in the structure of the model's inputs, got "
            f"{given!r}"
        )
    return given


def _like(model: Model, clone: Model) -> Model:
    """The clone, itself frozen or not as the model is, and compiled as it is; its layers are what they are."""
    object.__setattr__(clone, "_pydt_trainable", model.trainable)
    if model.compiled and type(clone).compile is Model.compile:
        arguments = dict(model.__dict__["_pydt_compile_config"])
        try:
            if model.optimizer is not None:
                arguments["optimizer"] = type(model.optimizer).from_config(model.optimizer.get_config())
        except (NotImplementedError, TypeError, ValueError) as error:
            warnings.warn(f"clone_model: the clone is not compiled: its optimizer: {error}", UserWarning, stacklevel=3)
            return clone
        for name in ("metrics", "weighted_metrics"):
            arguments[name] = copy.deepcopy(arguments[name])
        clone.compile(**arguments)
        clone.reset_metrics()
    return clone


def _copy_of(operation: Operation, clone: Callable[[Layer], Layer]) -> Any:
    if isinstance(operation, Layer):
        return clone(operation)
    twin = copy.copy(operation)
    twin._pydt_inbound_nodes = []
    return twin


def _clone_layer(layer: Layer) -> Any:
    if isinstance(layer, (Sequential, Functional)):
        return clone_model(layer)
    if isinstance(layer, InputLayer):
        return InputLayer(batch_shape=layer.batch_shape, dtype=layer.dtype, name=layer.name)
    return type(layer).from_config(layer.get_config())
