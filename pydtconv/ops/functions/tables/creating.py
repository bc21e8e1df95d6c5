"""Arrays made of numbers, shapes and other arrays' shapes: NumPy's functions with Keras's dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import config, hooks
from pydtconv.dtypes import converted
from pydtconv.extents import LARGEST, check
from pydtconv.ops.checks import check_axis
from pydtconv.ops.functions.arithmetic import add, affine, divide, multiply, power, subtract, unary
from pydtconv.ops.functions.operands import is_symbolic, is_watched, of_one_dtype
from pydtconv.ops.functions.shape import cast, reshape
from pydtconv.ops.functions.tables import rearranging
from pydtconv.ops.functions.tables.function_of_row import operands_of, signature_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import result_dtype
from pydtconv.serialization.budget import claim

#: signature, what it gives, and how; dtype None is floatx
_OF_FLOATS: list[tuple[str, str, Callable[..., Any]]] = [
    ("zeros(shape, dtype=None)", "Zeros.", np.zeros),
    ("ones(shape, dtype=None)", "Ones.", np.ones),
    ("empty(shape, dtype=None)", "An array whose values are not set: zeros here.", np.zeros),
    ("full(shape, fill_value, dtype=None)", "An array of one value.", np.full),
    ("eye(N, M=None, k=0, dtype=None)", "A matrix with ones on a diagonal.", np.eye),
    ("identity(n, dtype=None)", "The identity matrix.", np.identity),
    ("tri(N, M=None, k=0, dtype=None)", "A matrix with ones on and below a diagonal.", np.tri),
    (
        "linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0)",
        "Numbers at equal distances from start to stop.",
        np.linspace,
    ),
    (
        "logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0)",
        "Powers of base at equal distances of the exponent.",
        np.logspace,
    ),
    (
        "geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0)",
        "Numbers in equal ratios from start to stop.",
        np.geomspace,
    ),
]
_WINDOWS: list[tuple[str, str, Callable[..., Any]]] = [
    ("bartlett(x)", "Bartlett's window of x points, a triangle.", np.bartlett),
    ("blackman(x)", "Blackman's window of x points.", np.blackman),
    ("hamming(x)", "Hamming's window of x points.", np.hamming),
    ("hanning(x)", "Von Hann's window of x points.", np.hanning),
    ("kaiser(x, beta)", "Kaiser's window of x points.", np.kaiser),
]


#: arguments that are numbers of elements
_SIZES = {"shape", "N", "M", "n", "num", "k", "x"}


def _ends(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> tuple[Any, Any, np.ndarray]:
    """start and stop with an axis of extent 1 at `axis` of the result, and the shares of stop along it."""
    check("num", num, least=1)
    claim(16 * num, f"{num} numbers")
    start, stop = of_one_dtype(start, stop)
    rank = 1 + max(len(start.shape), len(stop.shape))
    axis = check_axis("axis", axis, rank)
    ends = []
    for x in (start, stop):
        shape = [*(1,) * (rank - 1 - len(x.shape)), *x.shape]
        ends.append(reshape(x, (*shape[:axis], 1, *shape[axis:])))
    shares = np.linspace(0, 1, num, endpoint).reshape([num if d == axis else 1 for d in range(rank)])
    return ends[0], ends[1], shares


def _between(start: Any, stop: Any, num: int, endpoint: bool, axis: int, retstep: bool = False) -> Any:
    first, last, shares = _ends(start, stop, num, endpoint, axis)
    found = add(multiply(first, 1 - shares), multiply(last, shares))
    return (found, divide(subtract(stop, start), float(num - endpoint or np.nan))) if retstep else found


def _ratios(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> Any:
    first, last, shares = _ends(start, stop, num, endpoint, axis)
    return multiply(first, power(divide(last, first), shares))


#: the same of tensors
_OF_TENSORS: dict[str, Callable[..., Any]] = {
    "full": lambda shape, fill_value: cast(rearranging._FUNCTIONS["broadcast_to"](fill_value, shape), config.floatx()),
    "linspace": _between,
    "logspace": lambda base, **ends: power(base, _between(**ends)),
    "geomspace": _ratios,
}


def _is_tensor(value: Any) -> bool:
    return is_symbolic(value) or (isinstance(value, np.ndarray) and is_watched(value))


def _made(text: str, about: str, function: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    name, signature = signature_of(text)

    def made(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        tensors = [key for key, value in given.items() if _is_tensor(value)]
        for key in tensors:
            if name not in _OF_TENSORS or key not in ("start", "stop", "fill_value"):
                raise NotImplementedError(f"ops.{name}: {key}: is here for arrays only, got {given[key]!r}")
        for key in _SIZES.intersection(given):
            check(f"{name}: {key}", given[key], least=-LARGEST if key == "k" else 0)
        dtype = given.pop("dtype", None)
        if tensors:
            found = _OF_TENSORS[name](**given)
            samples = found[0] if isinstance(found, tuple) else found
            samples = samples if dtype is None else cast(samples, dtype)
            return (samples, found[1]) if isinstance(found, tuple) else samples
        result = function(**given) if "x" not in given else function(int(given.pop("x")), **given)
        samples = result[0] if isinstance(result, tuple) else result
        if dtype is None and "start" in given:
            dtype = result_dtype("floats", [x.dtype.name for x in operands_of(given["start"], given["stop"])])
        elif dtype is None:
            wide = config.floatx() == "float64"
            dtype = config.floatx() if not np.iscomplexobj(result) else "complex128" if wide else "complex64"
        samples = hooks.as_result(converted(samples, dtype))
        return (samples, result[1]) if isinstance(result, tuple) else samples

    made.__name__ = made.__qualname__ = name
    made.__module__ = __name__
    made.__doc__ = about + ("  dtype: None for floatx." if "dtype" in signature.parameters else "")
    made.__signature__ = signature  # type: ignore[attr-defined]
    return name, made


_FUNCTIONS = dict(_made(*row) for row in (*_OF_FLOATS, *_WINDOWS))
globals().update(_FUNCTIONS)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> np.ndarray:
    """Numbers from start (0 where it is the only one) up to stop; integers where all are, else floatx."""
    for value in (start, stop, step):
        if is_symbolic(value):
            raise NotImplementedError(f"ops.arange: is here for arrays only, got {value!r}")
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if any(isinstance(value, (str, bytes)) for value in (start, stop, step)) or step == 0:
        raise ValueError(f"arange: expected numbers, and a step other than 0, got {start!r}, {stop!r}, {step!r}")
    if all(isinstance(value, int) for value in (start, stop, step)):
        check("arange: elements", -((start - stop) // step))
    array = np.arange(start, stop, step)
    return hooks.as_result(converted(array, dtype or ("int32" if array.dtype.kind in "iu" else config.floatx())))


def _like(x: Any, value: float, dtype: Any) -> Any:
    if _is_tensor(value):
        found = rearranging._FUNCTIONS["broadcast_to"](value, tuple(x.shape if hasattr(x, "shape") else np.shape(x)))
        return cast(found, dtype or x.dtype)
    if is_symbolic(x):
        y = affine(unary("sign", x), 0.0, value)  # the sign is finite where x is infinite or NaN
        return cast(y, x.dtype if dtype is None else dtype)
    array = np.asarray(x)
    return hooks.as_result(converted(np.full(array.shape, value), dtype or array.dtype))


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Zeros of the shape and dtype of x."""
    return _like(x, 0.0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Any:
    """Ones of the shape and dtype of x."""
    return _like(x, 1.0, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    """An array of one value of the shape and dtype of x."""
    return _like(x, fill_value, dtype)


empty_like = zeros_like


def array(x: Any, dtype: Any = None) -> Any:
    """x as a tensor; a copy."""
    return convert_to_tensor(np.array(x) if isinstance(x, np.ndarray) else x, dtype)


def convert_to_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> Any:
    """x as a tensor: an array of NumPy, or symbolic as it is.  Python's floats become floatx, its integers int32.

    In the block of a GradientTape, arrays of floats become tensors whose arithmetic is recorded.
    """
    if sparse or ragged:
        raise ValueError(f"convert_to_tensor: expected sparse and ragged None or False, got {sparse!r}, {ragged!r}")
    (value,) = operands_of(x)
    if is_symbolic(value) or (dtype is not None and is_watched(value)):
        return value if dtype is None else cast(value, dtype)
    array = value if dtype is None else converted(value, dtype)
    return hooks.as_result(hooks.recorded(array) if array.dtype.kind == "f" else array)


def convert_to_numpy(x: Any) -> np.ndarray:
    """x as an array of NumPy.  Raises ValueError for a symbolic tensor, which has no value."""
    return np.asarray(x)


__all__ = exported(
    [*_FUNCTIONS, "arange", "array", "empty_like", "full_like", "ones_like", "zeros_like"],
    core="convert_to_tensor",
    own="convert_to_numpy",
)
