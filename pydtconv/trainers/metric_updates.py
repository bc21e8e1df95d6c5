"""Calls of metrics inside `compute_loss` or a layer's `call`: they happen with the values of each batch.

While a step is traced, its graph notes them.  The tensors that they read become results of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.dtypes import real
from pydtconv.graph import Graph, Tensor
from pydtconv.metrics import Mean, Metric
from pydtconv.metrics.metric import given_to


@dataclass(frozen=True)
class Read:
    """Stands for the value of a result, or of an input, by its name."""

    name: str


@dataclass
class Update:
    """A call of a metric's method.  args, kwargs: with values, or `Read` in their place."""

    metric: Metric
    method: str
    args: Any
    kwargs: Any

    def filled(self, values: Mapping[str, Any]) -> Update:
        """With the values by their names."""

        def value(leaf: Any) -> Any:
            return np.asarray(values[leaf.name]) if isinstance(leaf, Read) else leaf

        found = tree.map_structure(value, (self.args, self.kwargs))
        return Update(self.metric, self.method, *given_to(self.metric, found))

    def run(self, portion: float) -> None:
        """portion: what part of a batch that several processes share is this one's; a mean counts by that."""
        kwargs = self.kwargs
        if portion != 1.0 and counts_by_portion(self.metric, self.method, self.args, kwargs):
            kwargs = {**kwargs, "sample_weight": portion}
        getattr(self.metric, self.method)(*self.args, **kwargs)


def counts_by_portion(metric: Any, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call gives a mean one number for the whole batch."""
    values = [leaf for leaf in tree.flatten((args, kwargs)) if leaf is not None]
    one = method == "update_state" and len(values) == 1 and np.shape(values[0]) == ()
    return one and isinstance(metric, Mean) and kwargs.get("sample_weight") is None


def updates_of(graph: Graph) -> list[Update]:
    """The calls that a graph has noted, whose tensors are made results of the graph."""
    names = {tensor: name for name, tensor in (*graph.inputs.items(), *graph.outputs.items())}

    def read(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if leaf.variable is not None:
            return leaf.variable
        leaf = graph.cast(leaf, real(leaf.dtype))
        if leaf.constant is not None:
            return leaf.constant
        if leaf not in names:
            names[leaf] = f"metric{len(graph.outputs)}"
            graph.outputs[names[leaf]] = leaf
        return Read(names[leaf])

    return [
        Update(each.metric, each.method, *tree.map_structure(read, (each.args, each.kwargs)))
        for each in graph.metric_updates
    ]
