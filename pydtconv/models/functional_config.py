"""Functional models as plain data and back, in the format of Keras 3."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from pydtconv import ops, tree
from pydtconv.layers.input_layer import InputLayer
from pydtconv.layers.layer import Layer
from pydtconv.layers.symbolic import KerasTensor, Node, OpCall, Operation, is_keras_tensor
from pydtconv.models.keras_operations import Described, described
from pydtconv.models.network import Network
from pydtconv.naming import to_snake_case
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
        return [layer, index + tensor.node.operation._first_call, part]

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
        calls = [node for node in operation._inbound_nodes if node in places and not node.is_input]
        known = described(operation.op, calls[0]) if isinstance(operation, OpCall) and calls else None
        if known is not None and known.padding is None:
            layers.append(_keras_data(operation.name, known, [call_of(*known.arguments(node.args)) for node in calls]))
        elif known is not None and len(calls) == 1:
            layers.extend(_padded_data(operation.name, known, calls[0], data_of))
        else:
            data = serialize_operation(operation)
            data["name"] = operation.name
            data["inbound_nodes"] = [call_of(node.args, node.kwargs) for node in calls]
            layers.append(data)
    return {
        "name": name,
        "trainable": trainable,
        "layers": layers,
        "input_layers": tree.map_structure(border_place_of, network.inputs),
        "output_layers": tree.map_structure(border_place_of, network.outputs),
    }


def _keras_data(name: str, known: Described, calls: list[Any]) -> dict[str, Any]:
    """An operation of `keras.ops` as Keras writes it."""
    module, class_name = known.path.split(".")
    return {
        "module": f"keras.src.ops.{module}",
        "class_name": class_name,
        "config": {"name": name, **known.config},
        "registered_name": class_name,
        "name": name,
        "inbound_nodes": calls,
    }


def _padded_data(name: str, known: Described, node: Node, data_of: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """A pooling with a padding of its own as two operations: Keras's pooling has none."""
    assert known.padding is not None
    (x,), padded = node.input_tensors, f"{name}_pad"
    config = {"pad_width": [list(pair) for pair in known.padding], "mode": "constant"}
    pad = Described("numpy.Pad", config, known.arguments)
    shape = [n if n is None else n + a + b for n, (a, b) in zip(x.shape, known.padding, strict=True)]
    between = {"shape": shape, "dtype": x.dtype, "keras_history": [padded, 0, 0]}
    first = {"args": [data_of(x)], "kwargs": {"constant_values": -math.inf}}
    then = {"args": [{"class_name": "__keras_tensor__", "config": between}], "kwargs": {}}
    return [_keras_data(padded, pad, [first]), _keras_data(name, known, [then])]


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
        return _FunctionCall(data["class_name"], data.get("config") or {})
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


#: classes of Keras's operations whose functions are named otherwise
_OTHER_NAMES = {
    "TrueDivide": "divide",
    "BatchNorm": "batch_normalization",
    "LayerNorm": "layer_normalization",
    "RMSNorm": "rms_normalization",
    "AllClose": "allclose",
    "CDist": "cdist",
    "IsIn": "isin",
    "SearchSorted": "searchsorted",
    "HSVToRGB": "image.hsv_to_rgb",
    "RGBToGrayscale": "image.rgb_to_grayscale",
    "RGBToHSV": "image.rgb_to_hsv",
    "SSIM": "image.ssim",
}


#: values of arguments that say what functions without them do
_OF_OTHERS: dict[str, tuple[Any, ...]] = {"rms_scaling": (False,)}


def _function_of(class_name: str) -> tuple[str, Callable[..., Any] | None]:
    """The name of a class of Keras in `keras.ops`, and our function of that name, if there is one."""
    name = _OTHER_NAMES.get(class_name, to_snake_case(class_name))
    function = getattr(ops, name, None)
    if not inspect.isfunction(function) and hasattr(ops.image, name.removeprefix("image.")):
        name = f"image.{name.removeprefix('image.')}"
        function = getattr(ops.image, name.removeprefix("image."))
    return name, function if inspect.isfunction(function) else None


def is_function(class_name: str) -> bool:
    """Whether a class of Keras is the operation of one of our functions."""
    return _function_of(class_name)[1] is not None


class _FunctionCall:
    """A call of one of `keras.ops`, as a file of Keras names it, by our function of that name.

    config: arguments of the operation, which go to the function beside the tensors of the call.
    """

    _first_call = 0

    def __init__(self, class_name: str, config: Mapping[str, Any]) -> None:
        self.name, function = _function_of(class_name)
        self._given_name = config.get("name")
        if function is None:
            raise ValueError(f"the model uses keras.ops.{self.name}, which pydtconv.ops does not have")
        self._function = function
        self._arguments = self._known(config)
        self._inbound_nodes: list[_Result] = []

    def _known(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in a config.  Raises ValueError for one that our function does not have."""
        known = inspect.signature(self._function).parameters
        arguments = {}
        for key, value in config.items():
            if key in known:
                arguments[key] = _as_tuples(deserialize_keras_object(value))
            elif value not in (None, *_OF_OTHERS.get(key, ())) and key not in ("name", "dtype"):  # all have these two
                raise ValueError(
                    f"the model uses keras.ops.{self.name} with {key}={value!r}, which pydtconv.ops does not have"
                )
        return arguments

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        try:
            outputs = _padded_pool(self.name, args, self._arguments)
            if outputs is None:
                given = {**self._arguments, **kwargs}
                first = [given.pop("subscripts")] if self.name == "einsum" and "subscripts" in given else []
                outputs = self._function(*first, *_as_tuples(list(args)), **given)
        except TypeError as error:
            raise ValueError(
                f"the model uses keras.ops.{self.name} in a way that is not known here: {error}"
            ) from error
        tensors = tree.flatten(outputs)
        made = tensors[0]._keras_history.operation if is_keras_tensor(tensors[0]) else None
        if isinstance(made, OpCall) and isinstance(self._given_name, str) and self._given_name:
            made.name = self._given_name.replace("/", "_")
        self._inbound_nodes.append(_Result(tensors))


def _padded_pool(name: str, args: Any, arguments: Mapping[str, Any]) -> Any:
    """A pooling of what is padded with minus infinity, as one operator; None for anything else."""
    if name != "max_pool" or len(args) != 1 or arguments.get("padding") != "valid" or not is_keras_tensor(args[0]):
        return None
    pad = args[0].node.operation
    if not isinstance(pad, OpCall) or not isinstance(pad.op, ops.Pad) or pad.op.value != -math.inf:
        return None
    size, strides = arguments["pool_size"], arguments["strides"]
    if not isinstance(size, tuple) or any(map(any, (pad.op.padding[0], pad.op.padding[-1]))):
        return None
    return ops.MaxPool(size, strides, pad.op.padding[1:-1])(args[0].node.input_tensors[0])


@dataclasses.dataclass
class _Result:
    output_tensors: list[Any]


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value


def functional_from_config(cls: Callable[..., Any], config: Mapping[str, Any]) -> Any:
    """The model of `functional_config`'s result: makes the layers, then repeats their calls as soon as inputs exist."""
    operations: dict[str, Any] = {}
    earlier: dict[str, int] = {}  # calls of layers that are in other models, too
    calls: list[tuple[Any, dict[str, Any]]] = []
    for data in config["layers"]:
        operation = deserialize_operation(data)
        operations[data["name"]] = operation
        earlier[data["name"]] = 0 if isinstance(operation, InputLayer) else len(operation._inbound_nodes)
        calls.extend((operation, call) for call in data["inbound_nodes"])

    def tensor_at(name: str, node_index: int, tensor_index: int) -> KerasTensor:
        if name not in operations:
            raise ValueError(f"model config: a call refers to the layer {name!r}, which is not among the layers")
        node_index += earlier[name]
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
            if not call.get(_NAMED) and kwargs.get("training") is _default_training(operation):
                kwargs.pop("training", None)
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

    extra = {"name": config["name"]} if config.get("name") is not None else {}
    model = cls(inputs=structure_of(config["input_layers"]), outputs=structure_of(config["output_layers"]), **extra)
    if config.get("trainable") is False:  # of the model itself: each layer's own config says what it is
        object.__setattr__(model, "_trainable", False)
    return model


def _default_training(operation: Any) -> bool | None:
    """The `training` of a layer that is called without, which Keras writes as if the call had named it."""
    if not isinstance(operation, Layer):
        return None
    found = inspect.signature(operation.call).parameters.get("training")
    return True if found is None else found.default  # Keras's layers of images all have it


class _NotYet(Exception):
    """A call's input has not been made yet."""
