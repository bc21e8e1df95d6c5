"""Dtypes by name, and bfloat16, which NumPy has not: in memory it is uint16, the bits of its numbers.

bfloat16 is the upper half of a float32: 8 bits of exponent, 8 of precision.  Where images are bfloat16, arithmetic,
parameters and statistics are float32; `real` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv._ext import wire

BFLOAT16 = "bfloat16"

#: floating dtypes; which of them an operator has a kernel for, the registry says
FLOATING = ("float16", BFLOAT16, "float32", "float64")
#: dtypes of complex numbers, which arrays alone have
COMPLEX = ("complex64", "complex128")
_INTEGERS = (*(f"int{bits}" for bits in (8, 16, 32, 64)), *(f"uint{bits}" for bits in (8, 16, 32, 64)))
#: the dtypes that there are, and of the arrays that hold them
_IN_MEMORY = {
    name: np.dtype(np.uint16 if name == BFLOAT16 else name) for name in ("bool", *_INTEGERS, *FLOATING, *COMPLEX)
}


#: NumPy's own property walks its classes
_NAMES = {dtype: name for name, dtype in _IN_MEMORY.items() if name != BFLOAT16}


def array_dtype(array: Any) -> str:
    """The name of an array's dtype, which may be one that we have not."""
    return _NAMES.get(array.dtype) or str(array.dtype.name)


def name_of(dtype: Any) -> str:
    """The name of a dtype: of a name, a NumPy dtype or type, ml_dtypes' bfloat16.

    Raises TypeError for what is none of numbers: memory of other dtypes (object, text) is not safe to compute with.
    """
    if isinstance(dtype, str) and dtype in _IN_MEMORY:
        return str(dtype)  # of a class of names the name itself
    if isinstance(dtype, np.dtype) and dtype in _NAMES:
        return _NAMES[dtype]
    if getattr(dtype, "name", getattr(dtype, "__name__", None)) == BFLOAT16:
        return BFLOAT16
    try:
        name = None if dtype is None else np.dtype(dtype).name
    except (TypeError, ValueError, SyntaxError):
        name = None
    if name not in _IN_MEMORY:
        raise TypeError(f"dtype: expected one of {', '.join(_IN_MEMORY)}, got {dtype!r}")
    return name


def in_memory(dtype: str) -> np.dtype:
    """The dtype of the arrays that hold it.  Raises TypeError for what is no dtype."""
    return _IN_MEMORY.get(dtype) or _IN_MEMORY[name_of(dtype)]


def itemsize(dtype: str) -> int:
    """Bytes of an element."""
    return in_memory(dtype).itemsize


def real(dtype: str) -> str:
    """The dtype of arithmetic on it, and of the parameters and statistics that go with images of it."""
    return "float32" if dtype == BFLOAT16 else dtype


def to_bits(values: Any) -> np.ndarray:
    """The bfloat16 numbers nearest to the values, as their bits; of two that are as near the even one.

    Numbers of float64 are those of float32 first.
    """
    array = np.asarray(values)
    wide = array.dtype.kind in "iu" and array.dtype.itemsize > 2
    array = np.ascontiguousarray(_rounded_to_odd(array) if wide else array, np.float32)
    bits = np.empty(array.shape, np.uint16)
    if array.size:
        wire.to_bfloat16(array.reshape(-1), bits.reshape(-1))
    return bits.reshape(np.shape(values))


def _rounded_to_odd(array: np.ndarray) -> np.ndarray:
    """Integers of more than 24 bits as float32, such that a second rounding gives what one alone would.

    What has no float32 becomes the one beside it whose last bit is set, so that it is no tie of a shorter format (S.
    Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    if array.dtype.itemsize == 8:  # 52 bits, of which the last one stands for the rest
        rest = array & array.dtype.type(0xFFF)
        large = (array >> array.dtype.type(12) << array.dtype.type(12)) | np.where(rest, 0x800, 0).astype(array.dtype)
        small = array < 1 << 52 if array.dtype.kind == "u" else (array < 1 << 52) & (array > -(1 << 52))
        array = np.where(small, array, large)
    exact = array.astype(np.float64)
    near = exact.astype(np.float32)
    bits = near.view(np.uint32)
    bits -= np.abs(near) > np.abs(exact)
    bits |= near != exact
    return near


def from_bits(bits: np.ndarray) -> np.ndarray:
    """The numbers that bits of bfloat16 mean, as float32."""
    dense = np.ascontiguousarray(bits)
    values = np.empty(dense.shape, np.float32)
    if dense.size:
        wire.from_bfloat16(dense.reshape(-1), values.reshape(-1))
    return values.reshape(np.shape(bits))


def refuse_kinds(name: str, data: Any) -> None:
    """Raises TypeError, with what mends it, for pictures of PIL and for masked arrays."""
    first = data[0] if isinstance(data, (list, tuple)) and data else data
    if type(first).__module__.startswith("PIL."):
        many = f"np.stack([np.asarray(image) for image in {name}])"
        mend = f"np.asarray({name})[None]" if first is data else many
        raise TypeError(f"{name}: expected arrays, got pictures of PIL: {mend}")
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError(f"{name}: expected an array without a mask, got a masked one: {name}.filled(0), for example")


def real_array(name: str, values: Any) -> np.ndarray:
    """The values as an array.  Raises TypeError, naming it, for complex numbers, where real ones are computed with."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise TypeError(f"{name}: expected real numbers, got {array.dtype.name}")
    return array


def converted(values: Any, dtype: Any) -> np.ndarray:
    """The values as an array of a dtype.  Raises TypeError for complex numbers where that is real.

    Of bfloat16 as `as_bfloat16` gives it, where ml_dtypes is installed; else its numbers in float32, of which a graph
    makes bfloat16 where they meet it.
    """
    name = name_of(dtype)
    if name != BFLOAT16:
        array = np.asarray(values) if name in COMPLEX else real_array(f"array of {name}", values)
        return array.astype(name, copy=False)
    try:
        return as_bfloat16(values)
    except ImportError:
        return from_bits(to_bits(values))


def as_bfloat16(values: Any) -> np.ndarray:
    """The values as an array of ml_dtypes' bfloat16.  Raises ImportError where that package is not installed."""
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("arrays of bfloat16: expected the package ml_dtypes, which is not installed") from None
    return to_bits(values).view(ml_dtypes.bfloat16)
