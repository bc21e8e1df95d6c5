"""Numbers checked as they are fed: kernels of a device cannot raise, and nothing may run for a wrong one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pydtconv.graph.ir.graph import Graph
from pydtconv.ops.cross_entropy import Targets
from pydtconv.ops.embedding import TakeRows


class _Wanted(NamedTuple):
    """What reads numbers, from 0 to below a limit; ignored: one more that is right."""

    operator: str
    name: str
    limit: int
    ignored: int | None = None


class Labels:
    """The inputs of a graph that a cross-entropy reads as labels, or that are numbers of a table's rows."""

    def __init__(self, graph: Graph) -> None:
        names = {tensor: name for name, tensor in graph.inputs.items()}
        self._wanted: dict[str, list[_Wanted]] = {}

        def want(tensor: Any, *wanted: Any) -> None:
            if tensor in names:
                self._wanted.setdefault(names[tensor], []).append(_Wanted(*wanted))

        for node in graph.nodes:
            op = node.op
            if isinstance(op, Targets) and op.kind == "sparse":
                classes = node.inputs[0].shape[op.axis] or 0
                want(node.inputs[1], type(op).__name__, "labels", classes, op.ignore_class)
            elif isinstance(op, TakeRows):
                want(node.inputs[0], "TakeRows", "index", node.inputs[1].shape[0])

    def check(self, name: str, value: Any) -> None:
        """Raises ValueError for labels that are no class, and for numbers outside of a table."""
        for wanted in self._wanted.get(name, ()):
            self._check(wanted, np.asarray(value))

    @staticmethod
    def _check(wanted: _Wanted, labels: np.ndarray) -> None:
        with np.errstate(invalid="ignore"):
            whole = np.nan_to_num(labels, nan=-1.0, posinf=-1.0, neginf=-1.0).astype(np.int64)
        wrong = (whole < 0) | (whole >= wanted.limit)
        if wanted.ignored is not None:
            wrong &= whole != wanted.ignored
        if not wrong.any():
            return
        least, most, last = labels.min(), labels.max(), wanted.limit - 1
        if wanted.name == "index":
            raise ValueError(f"{wanted.operator}: index: expected numbers from 0 to {last}, got {least} to {most}")
        more = "" if wanted.ignored is None else f" (or ignore_class {wanted.ignored})"
        raise ValueError(
            f"{wanted.operator}: expected labels from 0 to {last}{more} in y_true, got values from {least} to {most}"
        )
