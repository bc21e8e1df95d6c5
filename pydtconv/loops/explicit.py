"""Gradients as operators of the recording, which can be differentiated again: of a tape inside another's block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph.ir.graph import Tensor
from pydtconv.loops.derivatives import connected, differentiable_inputs, reached, within
from pydtconv.loops.rules import is_here, refused, rule_of


def explicit_gradients(
    recording: Any, targets: Sequence[Any], sources: Sequence[Any], spans: Sequence[tuple[int, int]]
) -> list[Any]:
    """As `Recording.differentiate`, by the rules of operators.  Raises NotImplementedError for one without a rule."""
    ends = [recording.inner(target) for target in targets]
    starts = [recording._as_source(source) for source in sources]
    found = connected(recording, ends, starts, spans)
    if not found.sources:
        return [None] * len(sources)
    nodes = list(recording.nodes)
    down = reached(nodes, found.sources, spans)
    gradients: dict[Tensor, Any] = {}
    for end in found.ends:
        shape = tuple(extent or 0 for extent in end.shape)
        _contribute(gradients, end, recording.constant(np.ones(shape), end.dtype, shape))
    for place in range(len(nodes) - 1, -1, -1):
        node = nodes[place]
        dy = gradients.get(node.outputs[0])
        wanted = [x for x in differentiable_inputs(node) if x in down]
        if dy is None or not wanted or not within(place, spans):
            continue
        x, y = [recording.handle(each) for each in node.inputs], recording.handle(node.outputs[0])
        dx = rule_of(node)(node, x, y, recording.handle(dy) if not hasattr(dy, "tensor") else dy)
        for tensor, gradient in zip(node.inputs, dx, strict=True):
            if tensor in wanted and gradient is not None:
                if not is_here(gradient):
                    raise refused(f"{node.op.name} by its filters")
                _contribute(gradients, tensor, gradient)
    return [gradients.get(start) if start in found.sources else None for start in starts]


def _contribute(gradients: dict[Tensor, Any], tensor: Tensor, gradient: Any) -> None:
    known = gradients.get(tensor)
    gradients[tensor] = gradient if known is None else ops.add(known, gradient)
