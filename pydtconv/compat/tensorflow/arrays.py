"""`Array`: a NumPy array with the names that TensorFlow's tensors have."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.dtypes import real_array
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.loops import Recording
from pydtconv.ops.operators import Operators


class Shape(tuple[int, ...]):
    """A shape that knows `as_list()`."""

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self)

    ndims = rank

    def as_list(self) -> list[int]:
        """The extents."""
        return list(self)


class Text(str):
    """A string that knows `numpy()`, which gives its bytes."""

    def numpy(self) -> bytes:
        """The string in UTF-8."""
        return self.encode()


class Extents(tuple[int, ...]):
    """What `tf.shape` gives: extents that can be calculated with, as with an array of integers."""

    def numpy(self) -> np.ndarray:
        """The extents as an array."""
        return np.array(self, "int32")

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Extents(found) if isinstance(key, slice) else found


def _of_extents(name: str) -> Any:
    def method(self: Extents, other: Any) -> Any:
        return getattr(self.numpy().view(Array), name)(other)

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "truediv", "mod"):
    setattr(Extents, f"__{_name}__", _of_extents(f"__{_name}__"))


class Array(np.ndarray):
    """A NumPy array that knows `numpy()`.  Where a `GradientTape` watches it, it takes part in what that records."""

    @property
    def shape(self) -> Shape:
        """The extents."""
        return Shape(super().shape)

    @shape.setter
    def shape(self, extents: Any) -> None:
        np.ndarray.shape.__set__(self, extents)  # type: ignore[attr-defined]

    def numpy(self) -> np.ndarray:
        """The array as NumPy's own; a number for what has no axes."""
        return np.array(self) if self.ndim else self[()].item() if self.dtype == bool else np.asarray(self)[()]

    def get_shape(self) -> Shape:
        """The shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Says what the shape is, None where that is open.  Raises ValueError where it is another one."""
        if len(shape) != self.ndim or any(n not in (None, m) for n, m in zip(shape, self.shape, strict=False)):
            raise ValueError(f"set_shape: expected a shape that {tuple(self.shape)} fits, got {tuple(shape)}")

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
        plain = [x.view(np.ndarray) if isinstance(x, Array) else x for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(x.view(np.ndarray) if isinstance(x, Array) else x for x in kwargs["out"])
        found = getattr(ufunc, method)(*plain, **kwargs)
        return found.view(Array) if isinstance(found, np.ndarray) else found


class Number(float):
    """A float that has what a script asks of a tensor without axes: results of metrics, learning rates."""

    shape = ()
    ndim = 0
    dtype = np.dtype("float32")

    def numpy(self) -> np.float32:
        """The number as NumPy has it."""
        return np.float32(self)


def as_tensor(value: Any) -> Any:
    """What functions give a script of TensorFlow's: arrays and floats that have its names; anything else as it is."""
    if isinstance(value, float):
        return Number(value)
    return value.view(Array) if isinstance(value, np.ndarray) else value


def _operator(name: str) -> Any:
    recorded, plain = getattr(Operators, name), getattr(np.ndarray, name)

    def method(self: Array, *args: Any) -> Any:
        if any(isinstance(x, (Tensor, Variable)) for x in args) or any(hasattr(x, "apply_op") for x in (self, *args)):
            return recorded(self, *args)
        if name != "__getitem__" and self.dtype.kind == "f":  # lists of numbers are of the array's dtype
            args = tuple(np.asarray(x, self.dtype) if isinstance(x, (list, tuple)) else x for x in args)
        return plain(self, *args)

    return method


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "neg", "abs", "mod", "rmod",
    "matmul", "lt", "le", "gt", "ge", "getitem",
):  # fmt: skip
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))


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
    if dtype is not None and np.dtype(name_of(dtype)).kind in "iuf":
        value = real_array(f"array of {name_of(dtype)}", value)
    found = np.asarray(value, None if dtype is None else name_of(dtype))
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
        found = found.astype({"f": "float32", "i": "int32"}.get(found.dtype.kind, found.dtype))
    return found.view(Array)


def name_of(dtype: Any) -> str:
    """The name of a dtype."""
    return dtype if isinstance(dtype, str) else np.dtype(dtype).name
