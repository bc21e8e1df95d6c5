"""`Array`: a NumPy array with the names that TensorFlow's tensors have.

Strings are bytes, in arrays of Python's objects.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.dtypes import DType, as_dtype
from pydtconv.compat.tensorflow.specs import Shape
from pydtconv.dtypes import real_array
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.loops import Recording
from pydtconv.ops.operators import Operators


class Count(int):
    """An integer that has what a script asks of a tensor without axes: extents, numbers of elements and of axes."""

    shape = ()
    dtype = as_dtype("int32")

    def numpy(self) -> np.int32:
        """The integer as NumPy has it."""
        return np.int32(self)


class Extents(tuple[int, ...]):
    """What `tf.shape` gives: extents that can be calculated with, as with an array of integers."""

    dtype = as_dtype("int32")

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        return Shape(len(self))

    def numpy(self) -> np.ndarray:
        """The extents as an array."""
        return np.array(self, "int32")

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Extents(found) if isinstance(key, slice) else Count(found) if type(found) is int else found

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def _of_extents(name: str) -> Any:
    def method(self: Extents, other: Any) -> Any:
        return getattr(self.numpy().view(Array), name)(other)

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "truediv", "mod"):
    setattr(Extents, f"__{_name}__", _of_extents(f"__{_name}__"))


class Array(np.ndarray):
    """A NumPy array that knows `numpy()`.  Where a `GradientTape` watches it, it takes part in what that records.

    Its elements, and what arithmetic on scalars gives, are arrays without axes.
    """

    @property
    def shape(self) -> Shape:
        """The extents."""
        return tuple.__new__(Shape, super().shape)

    @shape.setter
    def shape(self, extents: Any) -> None:
        np.ndarray.shape.__set__(self, extents)  # type: ignore[attr-defined]

    @property  # type: ignore[override]
    def dtype(self) -> DType:
        """The dtype, which also has what NumPy's has."""
        return as_dtype(super().dtype)

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        np.ndarray.dtype.__set__(self, dtype)  # type: ignore[attr-defined]

    def numpy(self) -> Any:
        """The array as NumPy's own; a number, or bytes, for what has no axes."""
        if self.ndim:
            return np.array(self)
        return self.item() if self.dtype.kind == "O" else np.asarray(self)[()]

    def to_tensor(self) -> Array:
        """Itself: what is ragged in TensorFlow has one extent along each axis here."""
        return self

    def get_shape(self) -> Shape:
        """The shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Says what the shape is, None where that is open.  Raises ValueError where it is another one."""
        if len(shape) != self.ndim or any(n not in (None, m) for n, m in zip(shape, self.shape, strict=False)):
            raise ValueError(f"set_shape: expected a shape that {tuple(self.shape)} fits, got {tuple(shape)}")

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec)

    def __str__(self) -> str:
        return f"tf.Tensor({self.view(np.ndarray)}, shape={tuple(self.shape)}, dtype={self.dtype.name})"

    def __repr__(self) -> str:
        shape, plain = tuple(self.shape), self.view(np.ndarray)
        told = repr(plain) if self.ndim else repr(plain.item())
        return f"<tf.Tensor: shape={shape}, dtype={self.dtype.name}, numpy={told}>"

    @property
    def apply_op(self) -> Any:
        """How operators are added to what is recorded.  Raises AttributeError where the array is not watched."""
        graph = tracing.current()
        if isinstance(graph, Recording) and id(self) in graph.watched:
            return graph.fed(self).apply_op
        raise AttributeError("apply_op: only a watched array takes part in a recording")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, (Tensor, Variable)) for x in inputs):
            return NotImplemented
        if any(isinstance(x, Array) and x.dtype.kind == "O" for x in inputs):
            inputs = tuple(x if isinstance(x, Array) else in_bytes(x) for x in inputs)
        plain = [x.view(np.ndarray) if isinstance(x, Array) else x for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(x.view(np.ndarray) if isinstance(x, Array) else x for x in kwargs["out"])
        with np.errstate(all="ignore"):  # a division by zero is infinite, without a word
            found = getattr(ufunc, method)(*plain, **kwargs)
        return as_tensor(found) if isinstance(found, np.ndarray) or method == "__call__" else found

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions give NumPy's arrays, whose elements are numbers, as they do of tensors."""
        return function(*_plain(args), **_plain(kwargs))


def _plain(value: Any) -> Any:
    """A structure with NumPy's own arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value.view(np.ndarray) if isinstance(value, Array) else value


class Number(float):
    """A float that has what a script asks of a tensor without axes: results of metrics, learning rates."""

    shape = ()
    ndim = 0
    dtype = as_dtype("float32")

    def numpy(self) -> np.float32:
        """The number as NumPy has it."""
        return np.float32(self)


def _of_number(name: str) -> Any:
    plain = getattr(float, name)

    def method(self: Number, *args: Any) -> Any:
        found = plain(self, *args)
        return Number(found) if isinstance(found, float) else found

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "neg", "abs"):
    setattr(Number, f"__{_name}__", _of_number(f"__{_name}__"))


def as_tensor(value: Any) -> Any:
    """What functions give a script of TensorFlow's: arrays and floats that have its names; anything else as it is."""
    if type(value) is float:
        return Number(value)
    if isinstance(value, (np.generic, bytes)):
        return scalar(value)
    if not isinstance(value, np.ndarray):
        return value
    return in_bytes(value) if value.dtype.kind in "US" else value.view(Array)


def scalar(value: Any) -> Array:
    """A number of NumPy's, or bytes, as an array without axes."""
    if isinstance(value, np.generic):
        return np.asarray(value).view(Array)
    found = np.empty((), object)
    found[()] = value
    return found.view(Array)


def in_bytes(value: Any) -> Any:
    """A string, or an array or nested lists of strings, as an array of bytes in UTF-8."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return scalar(_encoded(value))
    texts = np.asarray(value, object)
    found = np.empty(texts.shape, object)
    found.reshape(-1)[:] = [_encoded(each) for each in texts.reshape(-1)]
    return found.view(Array)


def _encoded(text: Any) -> Any:
    text = os.fspath(text) if isinstance(text, os.PathLike) else text
    return bytes(text) if isinstance(text, bytes) else text.encode() if isinstance(text, str) else text


def text_of(value: Any) -> str:
    """The string that a tensor or another object stands for: a file's name, a pattern."""
    return bytes_of(value).decode() if isinstance(value, (np.ndarray, bytes)) else str(value)


def bytes_of(value: Any) -> bytes:
    """The bytes of a string.  Raises TypeError for what is none."""
    found = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if not isinstance(found, (bytes, str)):
        raise TypeError(f"expected one string, got {value!r}")
    return found if isinstance(found, bytes) else found.encode()


def _operator(name: str) -> Any:
    recorded, plain = getattr(Operators, name), getattr(np.ndarray, name)

    def method(self: Array, *args: Any) -> Any:
        if any(isinstance(x, (Tensor, Variable)) for x in args) or any(hasattr(x, "apply_op") for x in (self, *args)):
            return recorded(self, *args)
        if name != "__getitem__" and self.dtype.kind == "f":  # lists of numbers are of the array's dtype
            args = tuple(np.asarray(x, self.dtype) if isinstance(x, (list, tuple)) else x for x in args)
        found = plain(self, *args)
        return found if isinstance(found, np.ndarray) else scalar(found)

    return method


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "neg", "abs", "mod", "rmod",
    "matmul", "lt", "le", "gt", "ge", "getitem",
):  # fmt: skip
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))


def _compared(name: str, equal: bool) -> Any:
    plain = getattr(np.ndarray, name)

    def method(self: Array, other: Any) -> Any:
        return not equal if other is None else plain(self, other)

    return method


for _name, _equal in (("eq", True), ("ne", False)):
    setattr(Array, f"__{_name}__", _compared(f"__{_name}__", _equal))


def _in_place(name: str) -> Any:
    out = f"__{name}__"

    def method(self: Array, other: Any) -> Any:
        """Another array, as of tensors: who else has this one keeps its values."""
        return getattr(self, out)(other)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Array, f"__i{_name}__", _in_place(_name))


def array(value: Any, dtype: Any = None) -> Any:
    """A value as an array; what is recorded as it is, in the dtype where one is given.

    Raises TypeError for complex numbers where that is real.
    """
    from pydtconv import ops

    if isinstance(value, (Tensor, Variable)) or hasattr(value, "apply_op"):
        return value if dtype is None or str(value.dtype) == name_of(dtype) else ops.cast(value, name_of(dtype))
    if has_tensors(value):
        return array(ops.stack([array(each) for each in value]), dtype)
    kind = None if dtype is None else name_of(dtype)
    if kind == "string" or (kind is None and is_text(value)):
        return in_bytes(value)
    if kind is not None and np.dtype(kind).kind in "iuf":
        value = real_array(f"array of {kind}", value)
    found = np.asarray(value, kind)
    if found.dtype.kind in "OUS":
        return in_bytes(found)
    if dtype is None and not hasattr(value, "__array__"):
        found = found.astype({"f": "float32", "i": "int32"}.get(found.dtype.kind, found.dtype))
    return found.view(Array)


def has_tensors(value: Any) -> bool:
    """Whether a value is a list, or nested ones, with something that is recorded in it."""
    return isinstance(value, (list, tuple)) and any(
        hasattr(each, "apply_op") or has_tensors(each) for each in value if not isinstance(each, (int, float))
    )


def is_text(value: Any) -> bool:
    """Whether a value is a string, or a list or an array of strings."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (str, bytes, os.PathLike)) or (isinstance(value, np.ndarray) and value.dtype.kind in "OUS")


def name_of(dtype: Any) -> str:
    """The name of a dtype."""
    return dtype if type(dtype) is str else as_dtype(dtype).name
