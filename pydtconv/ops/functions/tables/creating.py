"""Arrays made of numbers, shapes and other arrays' shapes: NumPy's functions with Keras's dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import config, hooks
from pydtconv.dtypes import converted
from pydtconv.extents import LARGEST, check
from pydtconv.ops.functions.operands import is_symbolic, is_watched
from pydtconv.ops.functions.tables.making import signature_of

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


def _made(text: str, about: str, function: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    name, signature = signature_of(text)

    def made(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        for key, value in given.items():
            if is_symbolic(value):
                raise NotImplementedError(f"ops.{name}: {key}: is here for arrays only, got {value!r}")
        for key in _SIZES.intersection(given):
            check(f"{name}: {key}", given[key], least=-LARGEST if key == "k" else 0)
        dtype = given.pop("dtype", None)
        result = function(**given) if "x" not in given else function(int(given.pop("x")), **given)
        if dtype is None:
            wide = config.floatx() == "float64"
            dtype = config.floatx() if not np.iscomplexobj(result) else "complex128" if wide else "complex64"
        if isinstance(result, tuple):
            return converted(result[0], dtype), result[1]
        return converted(result, dtype)

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
    return converted(array, dtype or ("int32" if array.dtype.kind in "iu" else config.floatx()))


def _like(x: Any, value: float, dtype: Any) -> Any:
    from pydtconv.ops.functions.arithmetic import affine, unary
    from pydtconv.ops.functions.shape import cast

    if is_symbolic(x):
        y = affine(unary("sign", x), 0.0, value)  # the sign is finite where x is infinite or NaN
        return cast(y, x.dtype if dtype is None else dtype)
    array = np.asarray(x)
    return converted(np.full(array.shape, value), dtype or array.dtype)


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
    from pydtconv.ops.functions.shape import cast
    from pydtconv.ops.functions.tables.making import operands_of

    if sparse or ragged:
        raise ValueError(f"convert_to_tensor: expected sparse and ragged None or False, got {sparse!r}, {ragged!r}")
    (value,) = operands_of(x)
    if is_symbolic(value) or (dtype is not None and is_watched(value)):
        return value if dtype is None else cast(value, dtype)
    array = value if dtype is None else converted(value, dtype)
    return hooks.recorded(array) if array.dtype.kind == "f" else array


def convert_to_numpy(x: Any) -> np.ndarray:
    """x as an array of NumPy.  Raises TypeError for a symbolic tensor, which has no value."""
    return np.asarray(x)


__all__ = [
    *_FUNCTIONS,
    "arange",
    "array",
    "convert_to_numpy",
    "convert_to_tensor",
    "empty_like",
    "full_like",
    "ones_like",
    "zeros_like",
]
