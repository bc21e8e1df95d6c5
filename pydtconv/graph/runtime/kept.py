"""Plans that are kept for graphs which come again, with the variables that they are of."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.graph.ir.graph import Graph, Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.support.last_used import LastUsed

#: values that are kept
_KEPT = 64
#: bytes that stand for an array's
_DIGEST = 32


def key_of(graph: Graph) -> Hashable:
    """What two graphs share that are the same but for the values of what they are fed.

    The key holds the ids of variables: whoever keeps it keeps the graph, too.
    """
    numbers: dict[Tensor, int] = {}

    def number(tensor: Tensor) -> Hashable:
        if tensor.variable is not None:
            return "v", id(tensor.variable)
        if tensor.constant is not None:
            return "c", tensor.spec, _content(tensor.constant)
        return numbers.setdefault(tensor, len(numbers))

    fed = tuple((name, tensor.spec, number(tensor)) for name, tensor in graph.inputs.items())
    nodes = tuple(
        (node.op.exactly, node.stream, tuple(map(number, node.inputs)), tuple(map(number, node.outputs)))
        for node in graph.nodes
    )
    ends = tuple((name, number(tensor)) for name, tensor in (*graph.outputs.items(), *graph.gradients.items()))
    loss = None if graph.loss is None else number(graph.loss)
    sources = tuple(map(number, graph.sources or ()))
    return fed, nodes, ends, loss, sources, graph.training, graph.device, config.of_kernels()


def _content(array: np.ndarray) -> bytes:
    """What tells the array from others of its shape and dtype, in few bytes."""
    return (
        array.tobytes() if array.nbytes <= _DIGEST else hashlib.blake2b(array.tobytes(), digest_size=_DIGEST).digest()
    )


def variables_of(graph: Graph) -> list[Variable]:
    """The variables that a graph reads."""
    return [tensor.variable for tensor in graph.parameters if tensor.variable is not None]


class Kept:
    """What was made for keys, and is of variables.

    in_variables: whether it lies in one of them and goes with it, so that no model is kept by its plans.
    """

    def __init__(self, in_variables: bool) -> None:
        self._in_variables = in_variables
        self._own: dict[Hashable, Any] = {}
        self._holders: LastUsed[Callable[[], Any]] = LastUsed(_KEPT)

    def get(self, key: Hashable) -> Any:
        """What was made for the key, or None."""
        return self._values(self._holders.get(key)).get(key)

    def put(self, key: Hashable, value: Any, variables: Iterable[Variable]) -> Any:
        """Keeps the value, which is of these variables, and gives it back."""
        holder = next(iter(variables), None) if self._in_variables else None
        place: Callable[[], Any] = (lambda: self) if holder is None else weakref.ref(holder)
        self._values(place)[key] = value
        gone = self._holders.put(key, place)
        if gone is not None:
            self._values(gone[1]).pop(gone[0], None)
        return value

    def _values(self, place: Callable[[], Any] | None) -> dict[Hashable, Any]:
        holder = None if place is None else place()
        if isinstance(holder, Variable):
            if holder.kept is None:
                holder.kept = {}
            return holder.kept
        return {} if holder is None else self._own
