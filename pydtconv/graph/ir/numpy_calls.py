"""NumPy's functions of variables: `np.exp(variable)`, `np.sum(variable)`, `array + variable`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir import tracing

#: functions that NumPy calls for Python's operators: the operator, and its name where the array comes first
_OPERATORS: dict[np.ufunc, tuple[Callable[[Any, Any], Any], str]] = {
    np.add: (operator.add, "__radd__"),
    np.subtract: (operator.sub, "__rsub__"),
    np.multiply: (operator.mul, "__rmul__"),
    np.true_divide: (operator.truediv, "__rtruediv__"),
    np.floor_divide: (operator.floordiv, "__rfloordiv__"),
    np.remainder: (operator.mod, "__rmod__"),
    np.power: (operator.pow, "__rpow__"),
    np.matmul: (operator.matmul, "__rmatmul__"),
    np.less: (operator.lt, "__gt__"),
    np.less_equal: (operator.le, "__ge__"),
    np.greater: (operator.gt, "__lt__"),
    np.greater_equal: (operator.ge, "__le__"),
    np.equal: (operator.eq, "__eq__"),
    np.not_equal: (operator.ne, "__ne__"),
    np.bitwise_and: (operator.and_, "__and__"),
    np.bitwise_or: (operator.or_, "__or__"),
    np.bitwise_xor: (operator.xor, "__xor__"),
}


def call_ufunc(kind: type[Any], ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What `__array_ufunc__` of variables of this kind gives: operators are ours, others of NumPy and of the value.

    `array += variable` changes the array; in code that is traced or recorded it gives what is recorded.
    """
    ours = not kwargs or (kwargs.keys() == {"out"} and tracing.current() is not None)
    if ours and method == "__call__" and ufunc in _OPERATORS:
        call, reflected = _OPERATORS[ufunc]
        first, second = inputs
        return call(first, second) if isinstance(first, kind) else getattr(second, reflected)(first)
    values = [value.known() if isinstance(value, kind) else value for value in inputs]
    return getattr(ufunc, method)(*values, **kwargs)
