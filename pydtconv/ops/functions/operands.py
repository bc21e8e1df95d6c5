"""What functions are applied to: symbolic values as they are, anything else as float arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from pydtconv import config, hooks
from pydtconv.dtypes import BFLOAT16, COMPLEX, FLOATING, array_dtype, name_of, real
from pydtconv.ops.activation import Activation
from pydtconv.ops.checks import FLOATS
from pydtconv.ops.shape import Cast
from pydtconv.ops.table_op import TableOp, promoted


def as_padding(padding: Any) -> Any:
    """A padding whose name may be in capitals."""
    return padding.lower() if isinstance(padding, str) else padding


def is_symbolic(x: Any) -> bool:
    return hasattr(x, "apply_op")


def is_scalar(x: Any) -> bool:
    """Whether x is a number that is no more than a setting; an array that a tape watches is an operand."""
    return isinstance(x, Real) or (isinstance(x, np.ndarray) and x.ndim == 0 and not is_watched(x))


def is_watched(x: np.ndarray) -> bool:
    return hooks.recording_of([x]) is not None


def lists_numbers(x: Any) -> bool:
    """Whether x is a list (of lists) of Python's numbers, which have no dtype of their own."""
    if not isinstance(x, (list, tuple)):
        return False
    while isinstance(x, (list, tuple)) and x:
        x = x[0]
    return isinstance(x, (int, float, list, tuple)) and not isinstance(x, np.generic)


def as_operand(x: Any, dtype: str | None = None) -> Any:
    """x as an operand: symbolic values as they are, others as float arrays; Python's floats are floatx."""
    if is_symbolic(x):
        return x
    array = np.asarray(x)
    if array.dtype == object and any(each is None for each in array.flat):  # which NumPy makes a nan
        raise ValueError(f"expected a tensor or numbers, got {x!r}")
    if array.dtype.kind == "c":
        raise TypeError(f"expected real numbers, got {array.dtype}")
    wanted = dtype and real(dtype)  # the graph makes bfloat16 of it
    if wanted is None and (lists_numbers(x) or (isinstance(x, (int, float)) and not isinstance(x, np.generic))):
        wanted = config.floatx()
    if wanted and wanted != array_dtype(array) and is_watched(array):
        return Cast(wanted)(array)  # a copy would be another array, which nobody watches
    return array.astype(wanted or (array.dtype if array_dtype(array) in FLOATS else config.floatx()), copy=False)


def as_float(x: Any, dtype: str | None = None) -> Any:
    """x as floats, whatever it is."""
    if is_symbolic(x) and name_of(x.dtype) not in FLOATING:
        return Cast(dtype or config.floatx())(x)
    return as_operand(x, dtype)


def as_tensor(x: Any) -> Any:
    """x as an operand of what only moves elements: integers, booleans and complex numbers stay what they are.

    Python's integers, and lists of them, are int32, as far as these are small enough.
    """
    if is_symbolic(x):
        return x
    array = np.asarray(x)
    if isinstance(x, (np.ndarray, np.generic)) and array.dtype.kind in "biuc":
        return array
    if array.dtype.kind == "c":
        return array.astype("complex64" if config.floatx() == "float32" else "complex128")
    if array.dtype.kind not in "biu":
        return as_operand(x)
    small = array.dtype == np.int64 and array.min() >= -(2**31) and array.max() < 2**31
    return array.astype("int32") if small else array


def of_one_dtype(*xs: Any) -> tuple[Any, ...]:
    """Floats of one dtype: that of the first symbolic one, or float64 where one has it; of arrays alone the widest."""
    dtypes = [name_of(x.dtype) for x in xs if is_symbolic(x) and name_of(x.dtype) in FLOATING]
    if "float64" in dtypes and set(dtypes) != {"float64"}:
        xs = tuple(Cast("float64")(x) if is_symbolic(x) and name_of(x.dtype) != "float64" else x for x in xs)
        dtypes = ["float64"]
    of_arrays = (array_dtype(x) for x in xs if isinstance(x, np.ndarray))
    dtypes += sorted((name for name in of_arrays if name in FLOATS), reverse=True)
    return tuple(as_float(x, dtypes[0] if dtypes else config.floatx()) for x in xs)


def as_integers(*xs: Any, widens: bool = False) -> list[Any] | None:
    """Integers in their common dtype; None where one of xs has floats.

    widens: whether int8 alone becomes int32, as in Keras's products for quantized layers.
    """
    tensors = [as_tensor(x) for x in xs]
    if any(name_of(x.dtype) in FLOATING for x in tensors):
        return None
    kind = np.result_type(*(str(x.dtype) for x in tensors)).name
    if widens and {str(x.dtype) for x in tensors} == {"int8"}:
        kind = "int32"
    return [Cast(kind)(x) if is_symbolic(x) else x.astype(kind) for x in tensors]


def of_integers(rule: str, function: Callable[..., Any], xs: Sequence[Any], **static: Any) -> Any:
    """A function of NumPy of integers; `rule` is the row of the table that calls it, for those that are symbolic."""
    if any(map(is_symbolic, xs)):
        return TableOp(rule, tuple(static.items()))(*xs)
    return hooks.as_result(np.asarray(function(*xs, **static)))


def of_one_kind(*xs: Any) -> tuple[Any, ...]:
    """Operands of one dtype: floats where one of them is, else the common one of integers or of complex numbers."""
    tensors = [as_tensor(x) for x in xs]
    if not tensors:
        return ()
    kinds = [name_of(x.dtype) for x in tensors]
    whole = not any(kind in COMPLEX for kind in kinds)
    if whole and any(kind in FLOATING for kind in kinds):
        return of_one_dtype(*xs)
    kind = promoted(kinds)
    return tuple(x if name_of(x.dtype) == kind else Cast(kind)(x) for x in tensors)


def in_reals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function of a tensor that is made of several operators: bfloat16 is rounded once, at the end."""

    @functools.wraps(function)
    def wide(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_symbolic(x) or name_of(x.dtype) != BFLOAT16:
            return function(x, *args, **kwargs)
        found = function(Cast(real(BFLOAT16))(x), *args, **kwargs)
        return tuple(map(Cast(BFLOAT16), found)) if isinstance(found, tuple) else Cast(BFLOAT16)(found)

    return wide


def unary(kind: str, x: Any, *parameters: float | None) -> Any:
    return Activation(kind, *parameters)(as_float(x))
