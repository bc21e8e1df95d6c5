"""The seeds by which a layer's operators draw."""

from __future__ import annotations

from typing import Any

from pydtconv.graph.ir.graph import current_graph
from pydtconv.ops.functions.tables.random import SeedGenerator

#: between the seeds of two calls
_ODD = 0x9E3779B97F4A7C15


def seed_of_call(layer: Any, given: Any = None) -> int:
    """The seed for the operators of a call: of calls on arrays, which have no step, each has another one.

    given: an integer or a SeedGenerator, which is taken in place of the layer's own.
    """
    if given is not None:
        return given.next() if isinstance(given, SeedGenerator) else int(given)
    graph = current_graph()
    seed: int = layer.own_seed
    if graph is not None and not graph.runs_once:
        return seed
    calls = layer.__dict__.get("_pydt_calls_on_arrays", 0)
    object.__setattr__(layer, "_pydt_calls_on_arrays", calls + 1)
    return (seed + calls * _ODD) % 2**63
