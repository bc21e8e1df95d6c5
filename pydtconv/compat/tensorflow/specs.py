"""`tf.TensorShape` and `tf.TensorSpec`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.dtypes import as_dtype


class Shape(tuple[Any, ...]):
    """`tf.TensorShape`: extents, None where one is open.  Where not even their number is known, `rank` is None."""

    _unknown = False

    def __new__(cls, dims: Any = ()) -> Shape:
        one = isinstance(dims, (int, np.integer))
        found = super().__new__(cls, [dims] if one else () if dims is None else [_extent(n) for n in dims])
        if dims is None:
            found._unknown = True
        return found

    @property
    def rank(self) -> int | None:
        """The number of axes."""
        return None if self._unknown else len(self)

    ndims = rank

    @property
    def dims(self) -> list[int | None] | None:
        """The extents; None where their number is not known."""
        return None if self._unknown else list(self)

    def as_list(self) -> list[int | None]:
        """The extents.  Raises ValueError where their number is not known."""
        if self._unknown:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self)

    def is_fully_defined(self) -> bool:
        """Whether no extent is open."""
        return not self._unknown and None not in self

    def num_elements(self) -> int | None:
        """The number of elements; None where an extent is open."""
        return int(np.prod(self, dtype=np.int64)) if self.is_fully_defined() else None

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor may have both shapes."""
        other = Shape(other)
        if self._unknown or other._unknown:
            return True
        pairs = zip(self, other, strict=False)
        return len(self) == len(other) and all(None in (n, m) or n == m for n, m in pairs)

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError where no tensor may have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"expected a shape that {tuple(self)} fits, got {tuple(other)}")

    def merge_with(self, other: Any) -> Shape:
        """The shape with what another one knows of it.  Raises ValueError where they differ."""
        self.assert_is_compatible_with(other)
        other = Shape(other)
        if self._unknown or other._unknown:
            return other if self._unknown else self
        return Shape([m if n is None else n for n, m in zip(self, other, strict=True)])

    def concatenate(self, other: Any) -> Shape:
        """The extents of this shape, then those of another."""
        return Shape(None) if self._unknown or Shape(other)._unknown else Shape([*self, *Shape(other)])

    def __add__(self, other: Any) -> Any:
        return Shape(super().__add__(tuple(other)))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Shape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __str__(self) -> str:
        return "<unknown>" if self._unknown else str(tuple(self))

    def __repr__(self) -> str:
        return f"TensorShape({None if self._unknown else list(self)})"


def _extent(n: Any) -> int | None:
    return None if n is None or n == -1 else int(n)


class TensorSpec:
    """Shape and dtype of a tensor: of the arguments of a function, or of the elements of a data set."""

    def __init__(self, shape: Any = None, dtype: Any = "float32", name: str | None = None) -> None:
        self.shape, self.dtype, self.name = Shape(shape), as_dtype(dtype), name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of a tensor."""
        return cls(tensor.shape, as_dtype(tensor.dtype), name)

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """A copy."""
        return cls(None if spec.shape.rank is None else spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or one of that spec, may be of this spec."""
        other = spec_or_tensor
        return self.dtype == as_dtype(other.dtype) and self.shape.is_compatible_with(other.shape)

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.shape.rank, self.dtype.name, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


def most_general(specs: Iterable[TensorSpec]) -> TensorSpec:
    """The spec of tensors that may have any of these: extents that differ are open.

    Raises TypeError for specs of several dtypes.
    """
    first, *others = specs
    found: Any = first.shape
    for each in others:
        if each.dtype != first.dtype:
            raise TypeError(f"expected elements of one dtype, got {first.dtype!r} and {each.dtype!r}")
        same = found.rank is not None and found.rank == each.shape.rank
        found = Shape([n if n == m else None for n, m in zip(found, each.shape, strict=True)] if same else None)
    return TensorSpec(None if found.rank is None else found, first.dtype, first.name)
