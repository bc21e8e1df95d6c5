"""Functional models as plain data and back, in the format of Keras 3."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pydtconv import ops, tree
from pydtconv.layers.symbolic import KerasTensor, Node, OpCall, Operation
from pydtconv.models.network import Network
from pydtconv.naming import to_snake_case
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object


def functional_config(network: Network, name: str, trainable: bool) -> dict[str, Any]:
    """Layers with their calls ("inbound_nodes"), and which tensors are inputs and outputs."""
    places = _places(network)

    def place_of(tensor: KerasTensor) -> list[Any]:
        history = tensor._keras_history
        assert history is not None
        return [history.operation.name, places[tensor.node], history.tensor_index]

    def border_place_of(tensor: KerasTensor) -> list[Any]:
        layer, index, part = place_of(tensor)
        return [layer, index + tensor.node.operation._first_call, part]

    def data_of(leaf: Any) -> Any:
        if isinstance(leaf, KerasTensor):
            config = {"shape": leaf.shape, "dtype": leaf.dtype, "keras_history": place_of(leaf)}
            return {"class_name": "__keras_tensor__", "config": config}
        return serialize_keras_object(leaf)

    layers = []
    for operation in network.operations:
        data = serialize_operation(operation)
        data["name"] = operation.name
        data["inbound_nodes"] = [
            {
                "args": list(tree.map_structure(data_of, node.args)),
                "kwargs": tree.map_structure(data_of, node.kwargs),
            }
            for node in operation._inbound_nodes
            if node in places and not node.is_input
        ]
        layers.append(data)
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
        for index, node in enumerate(node for node in operation._inbound_nodes if node in inside)
    }


def serialize_operation(operation: Operation) -> dict[str, Any]:
    """A layer, or a single op, as plain data."""
    if not isinstance(operation, OpCall):
        return serialize_keras_object(operation)
    fields = {field.name: getattr(operation.op, field.name) for field in dataclasses.fields(operation.op)}  # type: ignore[arg-type]
    return {
        "module": "pydtconv.ops",
        "class_name": type(operation.op).__name__,
        "config": {"name": operation.name, **{key: serialize_keras_object(value) for key, value in fields.items()}},
        "registered_name": None,
    }


def deserialize_operation(data: dict[str, Any]) -> Any:
    """The reverse of serialize_operation."""
    if str(data.get("module")).startswith("keras.src.ops"):
        return _FunctionCall(data["class_name"])
    if data.get("module") != "pydtconv.ops":
        return deserialize_keras_object(
            {key: value for key, value in data.items() if key not in ("name", "inbound_nodes")}
        )
    config = dict(data["config"])
    name = config.pop("name")
    op_class = getattr(ops, data["class_name"], None)
    if op_class is None:
        raise ValueError(f"unknown op {data['class_name']!r} in the model's config")
    return OpCall(op_class(**{key: _as_tuples(deserialize_keras_object(value)) for key, value in config.items()}), name)


class _FunctionCall:
    """A call of one of `keras.ops`, as a file of Keras names it, by our function of that name."""

    _first_call = 0

    def __init__(self, class_name: str) -> None:
        self.name = to_snake_case(class_name)
        self._function = getattr(ops, self.name, None)
        self._inbound_nodes: list[_Result] = []
        if self._function is None:
            raise ValueError(f"the model uses keras.ops.{self.name}, which pydtconv.ops does not have")

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        assert self._function is not None
        self._inbound_nodes.append(_Result(tree.flatten(self._function(*args, **kwargs))))


@dataclasses.dataclass
class _Result:
    output_tensors: list[Any]


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value


def functional_from_config(cls: Callable[..., Any], config: Mapping[str, Any]) -> Any:
    """The model of `functional_config`'s result: makes the layers, then repeats their calls as soon as inputs exist."""
    operations: dict[str, Any] = {}
    calls: list[tuple[Any, dict[str, Any]]] = []
    for data in config["layers"]:
        operation = deserialize_operation(data)
        operations[data["name"]] = operation
        calls.extend((operation, call) for call in data["inbound_nodes"])

    def tensor_at(name: str, node_index: int, tensor_index: int) -> KerasTensor:
        if name not in operations:
            raise ValueError(f"model config: a call refers to the layer {name!r}, which is not among the layers")
        if node_index >= len(operations[name]._inbound_nodes):
            raise _NotYet
        return operations[name]._inbound_nodes[node_index].output_tensors[tensor_index]

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
        blocked: set[Any] = set()
        for operation, call in calls:
            try:
                if operation in blocked:  # calls of one layer are repeated in their order
                    raise _NotYet
                args, kwargs = revived(call["args"]), revived(call.get("kwargs") or {})
            except _NotYet:
                blocked.add(operation)
                later.append((operation, call))
                continue
            kwargs = {key: value for key, value in kwargs.items() if not (key == "mask" and value is None)}
            operation(*args, **kwargs)
        if len(later) == len(calls):
            raise ValueError(f"model config: calls of {later[0][0].name!r} depend on tensors that no call makes")
        calls = later

    def structure_of(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: structure_of(value) for key, value in data.items()}
        if len(data) == 3 and isinstance(data[0], str):
            name, node_index, tensor_index = data
            return tensor_at(name, node_index - operations[name]._first_call, tensor_index)
        return [structure_of(item) for item in data]

    extra = {key: config[key] for key in ("name", "trainable") if config.get(key) is not None}
    return cls(inputs=structure_of(config["input_layers"]), outputs=structure_of(config["output_layers"]), **extra)


class _NotYet(Exception):
    """A call's input has not been made yet."""
