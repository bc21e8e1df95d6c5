"""Tables of passes with some left out, to see what these do."""

from __future__ import annotations

import dataclasses

from pydtconv.graph import Graph
from pydtconv.graph.passes.graph_pass import GraphPass, run_passes
from pydtconv.graph.passes.order import PASSES


def without(*names: str) -> list[GraphPass]:
    """The table without these passes."""
    known = {each.name for each in PASSES}
    assert known.issuperset(names)
    left = [each for each in PASSES if each.name not in names]
    known.difference_update(names)
    return [dataclasses.replace(each, after=tuple(known.intersection(each.after))) for each in left]


def rewrite(graph: Graph) -> None:
    """Runs the passes up to the choice of algorithms."""
    later = ("algorithms", "kept-spectra", "backward-reductions", "bypassed-normalization", "normalized-prologue")
    run_passes(graph, without(*later))
