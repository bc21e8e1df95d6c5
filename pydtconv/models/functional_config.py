"""Functional models as plain data and back, in the format of Keras 3."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydtconv import tree
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor, Node, symbolic_leaves
from pydtconv.layers.input_layer import InputLayer
from pydtconv.models.keras_operations import call_operation, check_call, operation_data, operation_of
from pydtconv.models.network import Network
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object

#: in the data of a call whose caller named `training`; Keras, which reads past it, writes it for all calls
_NAMED = "training_is_named"


def functional_config(network: Network, name: str, trainable: bool) -> dict[str, Any]:
    """Layers with their calls ("inbound_nodes"), and which tensors are inputs and outputs."""
    places = _places(network)

    def place_of(tensor: KerasTensor) -> list[Any]:
        history = tensor._keras_history
        assert history is not None
        return [history.operation.name, places[tensor.node], history.tensor_index]

    def border_place_of(tensor: KerasTensor) -> list[Any]:
        layer, index, part = place_of(tensor)
        return [layer, index + tensor.node.operation._pydt_first_call, part]

    def data_of(leaf: Any) -> Any:
        if isinstance(leaf, KerasTensor):
            config = {"shape": leaf.shape, "dtype": leaf.dtype, "keras_history": place_of(leaf)}
            return {"class_name": "__keras_tensor__", "config": config}
        return serialize_keras_object(leaf)

    def call_of(args: Any, kwargs: Any) -> dict[str, Any]:
        named = {_NAMED: True} if kwargs.get("training") is not None else {}
        return {"args": list(tree.map_structure(data_of, args)), "kwargs": tree.map_structure(data_of, kwargs), **named}

    layers = []
    for operation in network.operations:
        calls = [node for node in operation._pydt_inbound_nodes if node in places and not node.is_input]
        layers.extend(operation_data(operation, calls, call_of))
    return {
        "name": name,
        "trainable": trainable,
        "layers": layers,
        "input_layers": tree.map_structure(border_place_of, network.inputs),
        "output_layers": tree.map_structure(border_place_of, network.outputs),
    }


def _places(network: Network) -> dict[Node, int]:
    """The index of each node among those calls of its operation that belong to the network."""
    inside = set(network.nodes)
    return {
        node: index
        for operation in network.operations
        for index, node in enumerate(node for node in operation._pydt_inbound_nodes if node in inside)
    }


def functional_from_config(cls: Callable[..., Any], config: Mapping[str, Any]) -> Any:
    """The model of `functional_config`'s result: makes the layers, then repeats their calls as soon as inputs exist."""
    operations: dict[str, Any] = {}
    earlier: dict[str, int] = {}  # calls of layers that are in other models, too
    calls: list[tuple[str, dict[str, Any]]] = []
    for data in config["layers"]:
        operation = operation_of(data)
        operations[data["name"]] = operation
        earlier[data["name"]] = 0 if isinstance(operation, InputLayer) else len(operation._pydt_inbound_nodes)
        calls.extend((data["name"], call) for call in data["inbound_nodes"])

    def tensor_at(name: str, node_index: int, tensor_index: int) -> KerasTensor:
        if name not in operations:
            raise ValueError(f"model config: a call refers to the layer {name!r}, which is not among the layers")
        node_index += earlier[name]
        if node_index >= len(operations[name]._pydt_inbound_nodes):
            raise _NotYet
        return operations[name]._pydt_inbound_nodes[node_index].output_tensors[tensor_index]

    def revived(data: Any) -> Any:
        if isinstance(data, dict) and data.get("class_name") == "__keras_tensor__":
            return tensor_at(*data["config"]["keras_history"])
        if isinstance(data, dict) and "class_name" not in data:
            return {key: revived(value) for key, value in data.items()}
        if isinstance(data, list):
            return [revived(item) for item in data]
        return deserialize_keras_object(data)

    while calls:
        later = []
        blocked: set[str] = set()
        for name, call in calls:
            try:
                if name in blocked:  # calls of one layer are repeated in their order
                    raise _NotYet
                args, kwargs = revived(call["args"]), revived(call.get("kwargs") or {})
            except _NotYet:
                blocked.add(name)
                later.append((name, call))
                continue
            check_call(operations[name], call)
            if not symbolic_leaves((args, kwargs)):
                raise ValueError(f"model config: the call of {name!r}: expected a tensor of the model")
            kwargs = {key: value for key, value in kwargs.items() if not (key == "mask" and value is None)}
            if not call.get(_NAMED) and kwargs.get("training") is _default_training(operations[name]):
                kwargs.pop("training", None)
            operations[name] = call_operation(operations[name], args, kwargs)
        if len(later) == len(calls):
            raise ValueError(f"model config: calls of {later[0][0]!r} depend on tensors that no call makes")
        calls = later

    def structure_of(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: structure_of(value) for key, value in data.items()}
        if len(data) == 3 and isinstance(data[0], str):
            name, node_index, tensor_index = data
            return tensor_at(name, node_index - operations[name]._pydt_first_call, tensor_index)
        return type(data)(map(structure_of, data))

    extra = {"name": config["name"]} if config.get("name") is not None else {}
    model = cls(inputs=structure_of(config["input_layers"]), outputs=structure_of(config["output_layers"]), **extra)
    if config.get("trainable") is False:  # of the model itself: each layer's own config says what it is
        object.__setattr__(model, "_pydt_trainable", False)
    return model


def _default_training(operation: Any) -> bool | None:
    """The `training` of a layer that is called without, which Keras writes as if the call had named it."""
    if not isinstance(operation, Layer):
        return None
    found = inspect.signature(operation.call).parameters.get("training")
    return True if found is None else found.default  # Keras's layers of images all have it


class _NotYet(Exception):
    """A call's input has not been made yet."""
