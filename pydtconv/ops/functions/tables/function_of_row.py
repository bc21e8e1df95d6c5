"""From a row of a table to a function with Keras's name, arguments and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pydtconv import config, hooks
from pydtconv.dtypes import BFLOAT16, COMPLEX, converted, from_bits, name_of, real, to_bits
from pydtconv.hooks import as_result
from pydtconv.ops.base import outputs_of, spec_of
from pydtconv.ops.checks import FLOATING
from pydtconv.ops.functions.operands import is_symbolic
from pydtconv.ops.shape import Cast
from pydtconv.ops.table_op import EXTENTS, RULES, Rule, TableOp, result_dtype

#: a row: the signature ("flip(x, axis=None)"), what it computes, the rule
Row = tuple[str, str, Rule]


def signature_of(text: str) -> tuple[str, inspect.Signature]:
    """ "flip(x, axis=None)" -> its name and its signature."""
    name, _, parameters = text.partition("(")
    return name, inspect.signature(eval(f"lambda {parameters.removesuffix(')')}: None"))


def functions_of(
    module: str, rows: list[Row], tensors: Mapping[str, int] | int = 1, narrow: str = ""
) -> dict[str, Callable[..., Any]]:
    """The functions of a table by name, with their rules entered.

    tensors: how many of the first arguments are tensors, for all rows or by name; the others are settings.
    narrow: the functions whose rules are `Rule.narrow`.
    """
    made = {}
    for text, about, rule in rows:
        name, signature = signature_of(text)
        rule = replace(rule, narrow=True) if name in narrow.split() else rule
        count = tensors if isinstance(tensors, int) else tensors.get(name, 1)
        made[name] = _function(module, name, signature, about, rule, count)
    return made


def _function(
    module: str, name: str, signature: inspect.Signature, about: str, rule: Rule, count: int
) -> Callable[..., Any]:
    RULES[name] = rule

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = list(bound.arguments.items())
        return apply(name, [value for _, value in values[:count]], dict(values[count:]))

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = about
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def apply(name: str, values: list[Any], static: dict[str, Any]) -> Any:
    """The function of a rule on tensors or arrays, with settings."""
    if static.get("dtype") is not None:
        kind = name_of(static["dtype"])
        if kind == BFLOAT16:  # which NumPy has not
            found = apply(name, values, {**static, "dtype": real(kind)})
            return Cast(kind)(found) if is_symbolic(found) else converted(found, kind)
        static["dtype"] = kind
    operands = operands_of(*values)
    watched = hooks.recording_of(operands) is not None
    if watched or any(is_symbolic(value) for value in operands):
        return TableOp(name, tuple((key, frozen(value)) for key, value in static.items()))(*operands)
    rule = RULES[name]
    if any(static[key] is not None for key in EXTENTS.keys() & static):
        outputs_of(TableOp(name, tuple((key, frozen(value)) for key, value in static.items())), *map(spec_of, operands))
    dtypes = [array.dtype.name for array in operands]
    with np.errstate(all="ignore"):
        result = rule.forward(*operands, **static)
    if isinstance(result, (tuple, list)):
        kinds = rule.dtype if isinstance(rule.dtype, tuple) else (rule.dtype,) * len(result)
        parts = [_as_kind(part, kind, dtypes, static) for part, kind in zip(result, kinds, strict=True)]
        return parts if type(result) is list else tuple(parts)  # NumPy has tuples with names
    return _as_kind(result, str(rule.dtype), dtypes, static)


def _as_kind(result: Any, kind: str, dtypes: list[str], static: dict[str, Any]) -> np.ndarray:
    return as_result(_in_kind(result, kind, dtypes, static))


def _in_kind(result: Any, kind: str, dtypes: list[str], static: dict[str, Any]) -> np.ndarray:
    array = np.asarray(result)
    if static.get("dtype") is not None:
        return array.astype(static["dtype"], copy=False)
    return array.astype(result_dtype(kind, dtypes), copy=False)


def operands_of(*values: Any) -> list[Any]:
    """Symbolic values as they are, the rest as arrays: numbers get the dtype of what they stand beside.

    Beside nothing but bfloat16 they are rounded to it, so that `ops.equal(x, 0.1)` finds what became of 0.1.
    """
    known = [str(value.dtype) for value in values if is_symbolic(value) or isinstance(value, (np.ndarray, np.generic))]
    floats = [real(dtype) for dtype in known if dtype in FLOATING]
    rounds = bool(floats) and all(dtype == BFLOAT16 for dtype in known if dtype in FLOATING)

    def array_of(value: Any) -> Any:
        if is_symbolic(value):
            return value
        array = np.asarray(value)
        if array.dtype.kind == "O":
            raise TypeError(f"expected numbers, or arrays of one shape, got {value!r}")
        if isinstance(value, (np.ndarray, np.generic)):
            return array
        if array.dtype.kind == "f":
            return from_bits(to_bits(array)) if rounds else array.astype(floats[0] if floats else config.floatx())
        if array.dtype.kind == "c":
            return array.astype("complex64" if config.floatx() == "float32" else "complex128")
        if array.dtype.kind == "i" and array.ndim == 0 and known and known[0] not in COMPLEX:
            return array.astype(floats[0] if floats else _kind_beside(value, known[0]))
        if array.dtype.kind == "i" and array.dtype == np.int64:
            return array.astype("int32")
        return array

    return [array_of(value) for value in values]


def _kind_beside(number: int, dtype: str) -> str:
    """The dtype of an integer beside a tensor of integers or booleans: the tensor's where it holds the number."""
    kinds = ("int32" if dtype == "bool" else dtype, "int32", "int64")
    return next(kind for kind in kinds if np.iinfo(kind).min <= number <= np.iinfo(kind).max)


def frozen(value: Any) -> Any:
    """A setting that can be part of an operator: lists and arrays as tuples."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value
