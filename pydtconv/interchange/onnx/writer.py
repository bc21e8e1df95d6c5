"""`Writer`: the nodes and constants of an ONNX graph, and in which layout each tensor of ours is there already.

Our images have their channels last, ONNX's first.  A value may be there in both layouts: operators ask for the one that
they need, and a Transpose is written only where nobody has made it yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pydtconv.dtypes import BFLOAT16, from_bits, real
from pydtconv.graph import Tensor
from pydtconv.interchange.onnx.package import import_onnx


class Multiple(NamedTuple):
    """An extent that is so many times the batch."""

    times: int


Extent = int | Multiple


def to_first(rank: int) -> tuple[int, ...]:
    """The order of axes that puts the last one behind the batch."""
    return (0, rank - 1, *range(1, rank - 1))


def to_last(rank: int) -> tuple[int, ...]:
    """The order of axes that puts axis 1 last."""
    return (0, *range(2, rank), 1)


class Writer:
    """An ONNX graph that is being written.

    extents: of each tensor, as multiples of the batch where they are.  first_input: the tensor whose first extent is
    the batch.  readers: how many nodes read a tensor.
    """

    def __init__(self, extents: dict[Tensor, tuple[Extent, ...]], readers: dict[Tensor, int]) -> None:
        self._onnx = import_onnx("export")
        self.extents, self.readers = extents, readers
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.batch_source: Tensor | None = None
        self._names: dict[Tensor, str] = {}
        self._firsts: dict[Tensor, str] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._makers: dict[str, Any] = {}
        self._used: set[str] = set()
        self._batch: str | None = None

    # -- names and nodes -----------------------------------------------------------------------------------------------

    def new_name(self, like: str) -> str:
        """A name that no value has yet."""
        name, count = like, 1
        while name in self._used:
            count += 1
            name = f"{like}_{count}"
        self._used.add(name)
        return name

    def emit(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; returns the name of its output, or a list where there are several.  None is left out."""
        names = [self.new_name(kind.lower()) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        node = self._onnx.helper.make_node(kind, list(inputs), names, name=names[0], **given)
        self.nodes.append(node)
        self._makers.update(dict.fromkeys(names, node))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: str | None = None, name: str = "constant") -> str:
        """The name of an array; equal small ones are there once."""
        array = np.ascontiguousarray(value, dtype)
        array = array if np.ndim(value) else array.reshape(())
        key = (array.dtype.name, array.shape, array.tobytes()) if array.size <= 64 else None
        if key in self._known:
            return self._known[key]
        name = self.new_name(name)
        self.constants[name] = array
        if key is not None:
            self._known[key] = name
        return name

    def scalar(self, value: float, like: Tensor) -> str:
        """A number in the dtype of a tensor."""
        return self.constant(np.array(value, real(like.dtype)))

    def integers(self, values: Sequence[int]) -> str:
        return self.constant(np.array(list(values), "int64"))

    def maker(self, name: str) -> Any:
        """The node that makes a value, None for constants and inputs."""
        return self._makers.get(name)

    # -- tensors -------------------------------------------------------------------------------------------------------

    def array_of(self, tensor: Tensor) -> np.ndarray | None:
        """What a parameter or a constant holds, bfloat16 in float32; None for what is computed."""
        if tensor.variable is not None:
            return np.asarray(tensor.variable.value)
        bits = tensor.constant is not None and tensor.dtype == BFLOAT16 and tensor.constant.dtype == np.uint16
        return from_bits(tensor.constant) if bits else tensor.constant  # type: ignore[arg-type]

    def set(self, tensor: Tensor, name: str, first: bool = False) -> None:
        """name is the tensor, or, with `first`, the tensor with its channels first."""
        (self._firsts if first and len(tensor.shape) > 2 else self._names)[tensor] = name

    def value(self, tensor: Tensor) -> str:
        """The name of the tensor as it is."""
        if tensor not in self._names:
            array = self.array_of(tensor)
            if array is not None:
                self._names[tensor] = self._written(tensor, array)
            else:
                self._names[tensor] = self.transposed(self._firsts[tensor], to_last(len(tensor.shape)))
        return self._names[tensor]

    def first(self, tensor: Tensor) -> str:
        """The name of the tensor with its channels first."""
        rank = len(tensor.shape)
        if rank < 3:
            return self.value(tensor)
        if tensor not in self._firsts:
            array = self.array_of(tensor)
            if array is not None:
                self._firsts[tensor] = self._written(tensor, array.transpose(to_first(rank)))
            else:
                self._firsts[tensor] = self.transposed(self._names[tensor], to_first(rank))
        return self._firsts[tensor]

    def read(self, tensor: Tensor, first: bool) -> str:
        return self.first(tensor) if first else self.value(tensor)

    def is_first(self, tensor: Tensor) -> bool:
        """Whether the tensor is there with its channels first, and only so."""
        return tensor in self._firsts and tensor not in self._names

    def weights(self, tensor: Tensor, turn: Any, name: str = "weights") -> str | None:
        """A constant made by turn(array) of a parameter or a constant; None for what is computed."""
        array = self.array_of(tensor)
        if array is None:
            return None
        return self.constant(turn(array), name=name if tensor.variable is None else tensor.variable.path)

    def transposed(self, name: str, order: Sequence[int]) -> str:
        return self.emit("Transpose", name, perm=list(order))

    def _written(self, tensor: Tensor, array: np.ndarray) -> str:
        extents = self.extents.get(tensor)
        if extents is not None and any(isinstance(extent, Multiple) for extent in extents):
            if array.size and not (array == array.flat[0]).all():
                raise ValueError(
                    f"export: a constant of shape {tensor.shape} depends on the batch size and is not of one value"
                )
            return self.emit("Expand", self.constant(array.flat[0]), self.shape(extents))
        return self.constant(array, name="constant" if tensor.variable is None else tensor.variable.path)

    # -- shapes --------------------------------------------------------------------------------------------------------

    def shape(self, extents: Sequence[Extent]) -> str:
        """The name of a vector of extents."""
        if not any(isinstance(extent, Multiple) for extent in extents):
            return self.integers([int(extent) for extent in extents])  # type: ignore[arg-type]
        if self._batch is None:
            assert self.batch_source is not None
            whole = self.emit("Shape", self.value(self.batch_source))
            self._batch = self.emit("Slice", whole, self.integers([0]), self.integers([1]))
        parts = []
        for extent in extents:
            if not isinstance(extent, Multiple):
                parts.append(self.integers([extent]))
            elif extent.times == 1:
                parts.append(self._batch)
            else:
                parts.append(self.emit("Mul", self._batch, self.integers([extent.times])))
        return parts[0] if len(parts) == 1 else self.emit("Concat", *parts, axis=0)

    def reshaped(self, name: str, extents: Sequence[Extent]) -> str:
        """A value in another shape: -1 stands for an extent that depends on the batch, where there is one of them."""
        unknown = [extent for extent in extents if isinstance(extent, Multiple)]
        if len(unknown) > 1 or 0 in extents:
            return self.emit("Reshape", name, self.shape(extents))
        return self.emit("Reshape", name, self.integers([-1 if isinstance(e, Multiple) else e for e in extents]))
