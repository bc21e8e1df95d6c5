"""What rows of the table from ONNX to ours are given: a node, and the model that is being made."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.files.reading import BadFileError
from pydtconv.graph.ir.variable import as_stored
from pydtconv.layers.base.symbolic import KerasTensor

#: stands for a batch that is not known in shapes that a file computes with: a prime that no extent has as a factor
BATCH = 2**31 - 1


def is_symbolic(value: Any) -> bool:
    return isinstance(value, KerasTensor)


#: nodes whose outputs are some of the elements of their inputs, or say how many there are
_MOVES = ("Concat", "Gather", "Identity", "Reshape", "Shape", "Size", "Slice", "Split", "Squeeze", "Unsqueeze")


def has_batch(value: np.ndarray) -> bool:
    """Whether an extent is among the values that follows `BATCH`; float32 rounds it up."""
    if value.dtype.kind not in "iuf":
        return False
    whole = np.nan_to_num(np.abs(value.astype("float64")), posinf=0)
    return bool(((whole >= BATCH) & ((whole % BATCH == 0) | (whole % (BATCH + 1) == 0))).any())


class Builder:
    """The model that is being made of a file.

    values: symbolic tensors and arrays by the file's names.  readers: the nodes that read a value, None for the
    graph's outputs.  limit: bytes that constants may still have that are computed.  freed: the batch that the file
    fixed and that is free nevertheless.  integers: names of symbolic values that are whole numbers in the file, and
    floats here.  made: layers by what they are made of, for nodes that share weights.  fused: outputs of nodes whose
    layer another node's is.
    of_batch: names of constants that were computed from a batch that is not known: they are shapes, but no numbers.
    """

    def __init__(self, opset: int, limit: int) -> None:
        self.opset, self.limit = opset, limit
        self.values: dict[str, Any] = {}
        self.readers: dict[str, list[Any]] = {}
        self.freed: int | None = None
        self.integers: set[str] = set()
        self.made: dict[Any, Any] = {}
        self.of_batch: set[str] = set()
        self.fused: set[str] = set()
        self._names: dict[str, int] = {}  # and the count that was tried last

    def enter(self, node: Any, name: str, value: Any) -> None:
        """Takes over an output of a node."""
        self.values[name] = value
        before = [self.values[source] for source in node.input if source in self.of_batch]
        if isinstance(value, np.ndarray) and (before or node.op_type in ("Shape", "Size")):
            computed = before and (node.op_type not in _MOVES or not any(map(has_batch, before)))
            if computed or has_batch(value):
                self.of_batch.add(name)

    def ones(self, rank: int) -> Any:
        """Ones of shape (batch, 1, ...), of so many axes."""
        source = next(value for value in self.values.values() if is_symbolic(value) and value.shape[0] is None)
        for axis in range(1, len(source.shape)):
            source = ops.slice_along(source, axis, 0, 1)
        return ops.ones_like(ops.reshape(source, (-1, *(1,) * (rank - 1))))

    def layer_name(self, name: str) -> str:
        """A name for a layer that no other one has."""
        base = re.sub(r"[^\w.]+", "_", name).strip("_.") or "node"
        name, count = base, self._names.get(base, 0)
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names |= {base: count, name: self._names.get(name, 0)}
        return name


class Call:
    """A node: x its inputs, None for those that are left out; `attribute` gives one of its attributes."""

    def __init__(self, builder: Builder, node: Any, attributes: dict[str, Any]) -> None:
        self.builder, self.node, self.kind = builder, node, node.op_type
        self.x: list[Any] = [builder.values.get(name) if name else None for name in node.input]
        self._attributes = attributes
        self._asked: set[str] = {"consumed_inputs"}  # before version 6: which inputs may be written over

    @property
    def opset(self) -> int:
        return self.builder.opset

    def error(self, text: str) -> BadFileError:
        """An error that names the node."""
        return BadFileError(f"{self.kind} (node {self.node.name or self.node.output[0]!r}): {text}")

    def attribute(self, name: str, default: Any = None) -> Any:
        self._asked.add(name)
        return self._attributes.get(name, default)

    def expect(self, name: str, *values: Any) -> None:
        """Raises an error where an attribute is there and is none of these values."""
        got = self.attribute(name, values[0])
        if got not in values:
            raise self.error(f"{name}: expected {' or '.join(map(repr, values))}, got {got!r}")

    def check_attributes(self) -> None:
        """Raises an error for an attribute that the row has not looked at."""
        unknown = sorted(set(self._attributes) - self._asked)
        if unknown:
            raise self.error(f"attribute {unknown[0]}={self._attributes[unknown[0]]!r} is not supported")

    def input(self, index: int) -> Any:
        """An input, None where it is left out."""
        return self.x[index] if index < len(self.x) else None

    def constant(self, index: int, name: str) -> np.ndarray | None:
        """An input that must be known when the file is read; None where it is left out."""
        value = self.input(index)
        if is_symbolic(value):
            raise self.error(f"{name}: expected a constant, got what depends on the inputs")
        return value

    @property
    def is_integer(self) -> bool:
        """Whether all inputs are whole numbers."""
        pairs = [(name, value) for name, value in zip(self.node.input, self.x, strict=True) if value is not None]
        return all(
            name in self.builder.integers if is_symbolic(value) else value.dtype.kind in "iub" for name, value in pairs
        )

    def integers(self, index: int, name: str) -> list[int] | None:
        """A vector of integers: an attribute of this name or, in newer files, an input."""
        given = self.attribute(name)
        if given is not None:
            return [given] if isinstance(given, int) else list(given)
        value = self.constant(index, name)
        return None if value is None else [int(item) for item in np.ravel(value)]

    def shape(self, value: Any) -> list[int]:
        """A value's shape, `BATCH` or a multiple of it for an extent that is not known."""
        return [BATCH * value.times if extent is None else int(extent) for extent in value.shape]

    def make(self, layer: partial[Any], key: tuple[str, ...], inputs: Any, weights: Any) -> Any:
        """layer(name=...) on inputs, with weights; a layer of the same weights and settings is used again.

        key: names of the weights.  weights: arrays in the order of the layer's `get_weights`.
        """
        attributes = sorted((name, str(value)) for name, value in self._attributes.items())
        whole = (layer.func, key, tuple(attributes), repr((layer.args, sorted(layer.keywords.items()))))
        if key and whole in self.builder.made:
            return self.builder.made[whole](inputs)
        made = layer(name=self.builder.layer_name(self.node.name or self.node.output[0]))
        y = made(inputs)
        if weights:
            named = as_stored(f"layer {made.name!r}", zip(made.weights, weights, strict=True), stacklevel=6)
            made.set_weights([value for _, value in named])
        self.builder.made[whole] = made
        return y

    def only_reader(self) -> Any:
        """The only node that reads the (first) output, None where there are others or none."""
        readers = self.builder.readers.get(self.node.output[0], [])
        return readers[0] if len(readers) == 1 else None


def check_size(call: Call, shape: Sequence[int], itemsize: int = 8) -> None:
    """Raises an error for a constant that is larger, with those before it, than the file gives reason for."""
    size = math.prod(shape) * itemsize
    if any(extent < 0 for extent in shape) or size > call.builder.limit:
        raise call.error(f"expected a constant of {call.builder.limit} bytes at most, got shape {list(shape)}")
    call.builder.limit -= size


#: by the name of the operator: from a call to its output, or a list of several
ROWS: dict[str, Callable[[Call], Any]] = {}


def row(*kinds: str) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    def enter(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
        ROWS.update(dict.fromkeys(kinds, function))
        return function

    return enter
