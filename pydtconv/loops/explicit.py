"""Gradients as operators of the recording, which can be differentiated again: of a tape inside another's block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir.graph import Tensor
from pydtconv.loops.derivatives import connected, reached, within
from pydtconv.loops.rules import contribute, pull


def explicit_gradients(
    recording: Any, targets: Sequence[Any], sources: Sequence[Any], spans: Sequence[tuple[int, int]]
) -> list[Any]:
    """As `Recording.differentiate`, by the rules of operators.  Raises NotImplementedError for one without a rule."""
    ends = [recording.inner(target) for target in targets]
    starts = [recording._as_source(source) for source in sources]
    found = connected(recording, ends, starts, spans)
    if not found.sources:
        return [None] * len(sources)
    read = [(variable, place) for variable, place in found.variables if place in found.places]
    recording.check_known(recording.next_stage, found.sources, read)
    nodes = list(recording.nodes)
    gradients: dict[Tensor, Any] = {}
    for end in found.ends:
        shape = tuple(extent or 0 for extent in end.shape)
        contribute(gradients, end, recording.constant(np.ones(shape), end.dtype, shape))
    passed = [nodes[place] for place in range(len(nodes) - 1, -1, -1) if within(place, spans)]
    pull(recording, passed, gradients, reached(nodes, found.sources, spans))
    return [gradients.get(start) if start in found.sources else None for start in starts]
