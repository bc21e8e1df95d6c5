"""Arithmetic on integers gives integers, as in Keras; beside a float they are floats."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.dtypes import array_dtype
from pydtconv.hooks import as_result
from pydtconv.ops.functions.operands import as_tensor, is_symbolic, lists_numbers
from pydtconv.ops.shape import Cast
from pydtconv.ops.table_op import RULES, Rule, TableOp, no_gradient


def exact(on_integers: Callable[..., Any], of_booleans: bool = False) -> Callable[..., Callable[..., Any]]:
    """Decorator of a function on floats: what NumPy's function gives where tensors are integers, and numbers, too.

    of_booleans: whether booleans alone stay booleans; else they count as integers.
    """

    def decorator(on_floats: Callable[..., Any]) -> Callable[..., Any]:
        name = f"{on_floats.__name__} of integers"
        parameters = tuple(inspect.signature(on_floats).parameters)
        RULES[name] = Rule(on_integers, no_gradient, dtype="promote")

        @functools.wraps(on_floats)
        def function(*args: Any, **kwargs: Any) -> Any:
            given = [*args, *(kwargs[each] for each in parameters[len(args) :] if each in kwargs)]
            if len(given) != len(args) + len(kwargs) or not 0 < len(given) <= len(parameters):
                return on_floats(*args, **kwargs)  # which says what is wrong
            values = [as_tensor(value) if lists_numbers(value) else value for value in given]
            fraction = on_integers is np.power and _is_number(values[-1]) and values[-1] < 0
            if all(map(_is_whole, values)) and not fraction:  # without a tensor numbers are what they are
                return as_result(_as_small(on_integers(*values)))
            kinds = [_dtype(value) for value in values if not _is_number(value)]
            as_one = np.asarray if set(kinds) == {"bool"} else int  # a truth value beside integers is 0 or 1
            values = [as_one(value) if isinstance(value, (bool, np.bool_)) else value for value in values]
            if not kinds or not all(kinds) or not all(map(_is_integer, filter(_is_number, values))):
                return on_floats(*args, **kwargs)
            if set(kinds) == {"bool"} and not (of_booleans and not any(map(_is_number, values))):
                values = [_counting(value) for value in values]
            kind = next(str(value.dtype) for value in values if not _is_number(value))
            operands = [np.asarray(value, kind) if _is_number(value) else value for value in values]
            if any(map(is_symbolic, operands)):
                return TableOp(name)(*operands)
            return as_result(on_integers(*operands))

        return function

    return decorator


def _counting(value: Any) -> Any:
    """Booleans as integers; anything else as it is."""
    if getattr(value, "dtype", None) != "bool":
        return value
    return Cast("int32")(value) if is_symbolic(value) else value.astype("int32")


def _is_whole(value: Any) -> bool:
    return isinstance(value, (bool, int, np.bool_, np.integer))


def _as_small(number: Any) -> np.ndarray:
    """A whole number as an array, of int32 where that holds it."""
    found = np.asarray(number)
    return found.astype("int32") if found.dtype == np.int64 and -(2**31) <= found < 2**31 else found


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.generic))


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _dtype(value: Any) -> str | None:
    """The dtype of a tensor or an array of integers or booleans, None for anything else."""
    if not (is_symbolic(value) or isinstance(value, np.ndarray)):
        return None
    dtype = array_dtype(value) if isinstance(value, np.ndarray) else str(value.dtype)
    return dtype if dtype.startswith(("int", "uint", "bool")) else None
