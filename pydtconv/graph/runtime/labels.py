"""Labels checked as they are fed: kernels of a device cannot raise, and nothing may run for a wrong one."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.graph.ir.graph import Graph
from pydtconv.ops.cross_entropy import Targets


class Labels:
    """The inputs of a graph that a cross-entropy reads as labels."""

    def __init__(self, graph: Graph) -> None:
        names = {tensor: name for name, tensor in graph.inputs.items()}
        self._wanted: dict[str, tuple[str, int, int | None]] = {}
        for node in graph.nodes:
            op = node.op
            if isinstance(op, Targets) and op.kind == "sparse" and node.inputs[1] in names:
                classes = node.inputs[0].shape[op.axis] or 0
                self._wanted[names[node.inputs[1]]] = type(op).__name__, classes, op.ignore_class

    def check(self, name: str, value: Any) -> None:
        """Raises ValueError for labels that are no class."""
        if name not in self._wanted:
            return
        operator, classes, ignored = self._wanted[name]
        labels = np.asarray(value)
        with np.errstate(invalid="ignore"):
            whole = np.nan_to_num(labels, nan=-1.0, posinf=-1.0, neginf=-1.0).astype(np.int64)
        wrong = (whole < 0) | (whole >= classes)
        if ignored is not None:
            wrong &= whole != ignored
        if wrong.any():
            more = "" if ignored is None else f" (or ignore_class {ignored})"
            raise ValueError(
                f"{operator}: expected labels from 0 to {classes - 1}{more} in y_true, "
                f"got values from {labels.min()} to {labels.max()}"
            )
