"""Operations of functional models as plain data: functions as Keras writes them, operators as ours, and back.

Keras refuses a file with operators of ours by their names.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv.config import image_data_format
from pydtconv.layers.base.symbolic import FunctionCall, KerasTensor, Node, OpCall, Operation
from pydtconv.naming import to_snake_case
from pydtconv.ops.operations import Card, card_of, card_of_class
from pydtconv.serialization import registry
from pydtconv.serialization.objects import deserialize_keras_object, naming, serialize_keras_object
from pydtconv.serialization.values import check_arguments

Data = dict[str, Any]


def operation_data(operation: Operation, calls: list[Node], call_of: Callable[[Any, Any], Data]) -> list[Data]:
    """A layer, or an operation, with its calls; call_of(args, kwargs) is a call as plain data."""
    inbound = [call_of(node.args, node.kwargs) for node in calls]
    if isinstance(operation, FunctionCall):
        if operation.card.name == "get_item" and isinstance(calls[0].args[1], list):  # else Keras takes it for a tuple
            inbound = [call_of((calls[0].args[0], [calls[0].args[1]]), {})]
        if operation.card.name == "max_pool" and not isinstance(operation.config["padding"], str):
            return _padded_pool_data(operation, calls[0], call_of)
        return [_function_data(operation.name, operation.card, operation.config, inbound)]
    if isinstance(operation, OpCall) and isinstance(operation.op, ops.Slice):
        parts = [slice(a or None, b) for a, b in zip(operation.op.start, operation.op.stop, strict=True)]
        inbound = [call_of((*node.args, parts), {}) for node in calls]
        return [_function_data(operation.name, card_of("get_item"), {}, inbound)]
    data = _op_data(operation) if isinstance(operation, OpCall) else serialize_keras_object(operation)
    return [{**data, "name": operation.name, "inbound_nodes": inbound}]


def _op_data(operation: OpCall) -> Data:
    fields = {field.name: getattr(operation.op, field.name) for field in dataclasses.fields(operation.op)}  # type: ignore[arg-type]
    return {
        "module": "pydtconv.ops",
        "class_name": type(operation.op).__name__,
        "config": {"name": operation.name, **{key: serialize_keras_object(value) for key, value in fields.items()}},
        "registered_name": None,
    }


def _function_data(name: str, card: Card, config: Mapping[str, Any], calls: list[Data]) -> Data:
    return {
        "module": f"keras.src.{card.module}",
        "class_name": card.class_name,
        "config": {"name": name, **{key: serialize_keras_object(_as_lists(value)) for key, value in config.items()}},
        "registered_name": card.class_name,
        "name": name,
        "inbound_nodes": calls,
    }


def _padded_pool_data(pool: FunctionCall, node: Node, call_of: Callable[[Any, Any], Data]) -> list[Data]:
    """A pooling with a padding of its own as two operations: Keras's pooling has none."""
    (x,), padded = node.args, f"{pool.name}_pad"
    last = pool.config["data_format"] == "channels_last"
    sides = ((0, 0), *pool.config["padding"], (0, 0)) if last else ((0, 0), (0, 0), *pool.config["padding"])
    shape = [n if n is None else n + a + b for n, (a, b) in zip(x.shape, sides, strict=True)]
    between = {"shape": shape, "dtype": x.dtype, "keras_history": [padded, 0, 0]}
    then = {"args": [{"class_name": "__keras_tensor__", "config": between}], "kwargs": {}}
    pad = {"pad_width": sides, "mode": "constant"}
    return [
        _function_data(padded, card_of("pad"), pad, [call_of((x, -math.inf), {})]),
        _function_data(pool.name, pool.card, {**pool.config, "padding": "valid"}, [then]),
    ]


def _as_lists(value: Any) -> Any:
    """A setting as Keras's operations take it from a file: no tuples, and numbers of Python."""
    if isinstance(value, (list, tuple)):
        return [_as_lists(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list) else value


def operation_of(data: Data) -> Any:
    """A layer, or an operation, of its data, without its calls.  Raises ValueError for what is not known here."""
    module, config = str(data.get("module")), data.get("config") or {}
    if module.startswith(("keras.src.ops", "keras.src.activations")):
        return _function_of(data["class_name"], config)
    if module != "pydtconv.ops":
        given = {key: value for key, value in data.items() if key not in ("name", "inbound_nodes")}
        return deserialize_keras_object(given)
    op_class = getattr(ops, str(data["class_name"]), None)
    if not inspect.isclass(op_class) or not issubclass(op_class, ops.Op) or op_class is ops.Op:
        raise ValueError(f"unknown op {data['class_name']!r} in the model's config")
    check_arguments(op_class, config)
    card = card_of_class(str(config.get("function"))) if op_class is ops.TableOp else None
    if card is not None:  # a row of the table, whose settings are those of the function
        check_arguments(card.function, dict(config.get("static") or ()))
    with naming(op_class, config):
        fields = {key: _as_tuples(deserialize_keras_object(value)) for key, value in config.items() if key != "name"}
        return OpCall(op_class(**fields), config["name"])


def _function_of(class_name: str, config: Mapping[str, Any]) -> FunctionCall:
    card = card_of_class(class_name)
    functions = {
        key: registry.get_registered_object(str(value.get("registered_name")))
        for key, value in config.items()
        if isinstance(value, dict) and value.get("class_name") == "function"
    }
    if card is None or (card.takes_functions and not functions):
        raise ValueError(f"the model uses keras.ops.{to_snake_case(class_name)}, which pydtconv.ops does not have")
    if not all(map(callable, functions.values())):  # a file names functions of the user's alone
        raise ValueError(f"keras.ops.{card.name}: expected a function that is registered, got {config!r:.200}")
    check_arguments(card.function, {key: value for key, value in config.items() if key not in functions})
    known = dict(functions)
    for key, value in config.items():
        if key in functions:
            continue
        if key in card.parameters or key in card.config:
            known[key] = _as_tuples(deserialize_keras_object(value))
        elif value is not None and key not in ("name", "dtype"):  # all have these two
            raise ValueError(
                f"the model uses keras.ops.{card.name} with {key}={value!r}, which pydtconv.ops does not have"
            )
    name = config.get("name")
    return FunctionCall(card, known, name.replace("/", "_") if isinstance(name, str) and name else None)


def check_call(operation: Operation, call: Data) -> None:
    """Raises ValueError where an argument of a function's call, as the file has it, cannot be."""
    if isinstance(operation, FunctionCall):
        check_arguments(operation.card.function, dict(zip(operation.card.call_names, call["args"], strict=False)))
        check_arguments(operation.card.function, call.get("kwargs") or {})


def call_operation(operation: Operation, args: list[Any], kwargs: dict[str, Any]) -> Operation:
    """Repeats a call of a file; the operation that has it, which is another for a pooling of what is padded."""
    if not isinstance(operation, FunctionCall):
        with naming(type(operation), {"name": operation.name}):
            operation(*args, **kwargs)
        return operation
    if operation.card.name == "get_item" and len(args) == 2 and isinstance(args[1], list):
        args = [args[0], tuple(args[1])]
    operation, args = _with_its_padding(operation, args)
    try:
        with naming(operation.card.function, {"name": operation.name}):
            operation(*args, **kwargs)
    except TypeError as error:
        told = f"the model uses keras.ops.{operation.card.name} in a way that is not known here"
        raise ValueError(f"{told}: {error}") from error
    return operation


def _with_its_padding(pool: FunctionCall, args: list[Any]) -> tuple[FunctionCall, list[Any]]:
    """A pooling of what is padded with minus infinity as one, with that padding; anything else as it is."""
    config, x = pool.config, args[0] if args else None
    if pool.card.name != "max_pool" or config.get("padding") != "valid" or not isinstance(x, KerasTensor):
        return pool, args
    pad = x.node.operation
    if (
        not isinstance(pad, FunctionCall)
        or pad.card.name != "pad"
        or -math.inf not in tree.flatten([x.node.args[1:], list(x.node.kwargs.values())])
    ):
        return pool, args
    sides = pad.config["pad_width"]
    last = (config.get("data_format") or image_data_format()) == "channels_last"
    outside, inside = ((sides[0], sides[-1]), sides[1:-1]) if last else (sides[:2], sides[2:])
    if len(sides) != len(x.shape) or any(map(any, outside)):
        return pool, args
    return FunctionCall(pool.card, {**config, "padding": inside}, pool.name), list(x.node.input_tensors)
