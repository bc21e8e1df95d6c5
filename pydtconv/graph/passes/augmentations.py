"""Random changes of images that follow each other -> one operator, which is one pass over the images.

Transforms that follow each other become one resampling: what each puts outside of the image is as before, and there is
one interpolation instead of several.  Scales and offsets of channels before and behind them, as Rescaling and
Normalization have, join.  Numbers are drawn as if the operators were still apart.  What is differentiated stays apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer
from pydtconv.ops import Activation, Add, Divide, Multiply, Subtract
from pydtconv.ops.augment import Augment, Further

Streams = Mapping[Node, int]


def join_augmentations(graph: Graph) -> None:
    """Augment + Augment, where both are lists of steps -> the first with what follows it in `then`."""
    drawing = [node for node in graph.nodes if node.op.draws]
    streams = {node: index if node.stream is None else node.stream for index, node in enumerate(drawing)}
    readers = consumers(graph)
    augments = any(isinstance(node.op, Augment) for node in drawing)
    differentiated = set(RequiredGradients(graph).nodes if augments else ())
    for node in drawing:
        parts = _parts_of(node, streams) if node in graph.nodes and node not in differentiated else None
        if parts is None:
            continue
        while (behind := sole_consumer(graph, node, readers)) and (more := _parts_of(behind, streams)):
            parts = [*parts, *more]
            absorb(graph, node, behind, _as_one(parts), node.inputs)
        before = node.inputs[0].node
        while before and not before.op.draws and (more := _parts_of(before, streams)):
            if sole_consumer(graph, before, readers) is not node:
                break
            parts = [*more, *parts]
            absorb(graph, before, node, _as_one(parts), before.inputs[:1])
            node, before = before, before.inputs[0].node
        if len(parts) > 1:
            node.stream = parts[0].stream
            for each in drawing:
                each.stream = streams[each]


def _as_one(parts: Sequence[Further]) -> Augment:
    first, *then = parts
    return Augment(first.kind, first.settings, first.seed, tuple(then))


def _parts_of(node: Node, streams: Streams) -> list[Further] | None:
    """What a node does to images as changes; None where it is no list of steps."""
    op = node.op
    if isinstance(op, Augment):
        if not op.by_steps:
            return None
        return [Further(op.kind, op.settings, op.seed, streams[node]), *op.then]
    if len(node.inputs[0].shape) != 4:
        return None
    if isinstance(op, Activation) and op.kind == "affine":
        scale, offset, _ = op.parameters
        return _scaled((scale,), (offset,))
    values = (
        _of_channels(node.inputs[1]) if len(node.inputs) == 2 and node.outputs[0].spec == node.inputs[0].spec else None
    )
    if values is None:
        return None
    ones, zeros = (1.0,) * len(values), (0.0,) * len(values)
    if isinstance(op, Multiply):
        return _scaled(values, zeros)
    if isinstance(op, Divide):
        return _scaled(tuple(1 / value if value else np.inf for value in values), zeros)
    if isinstance(op, Subtract):
        return _scaled(ones, tuple(-value for value in values))
    return _scaled(ones, values) if op == Add() else None


def _scaled(scale: tuple[float, ...], offset: tuple[float, ...]) -> list[Further]:
    return [Further("scale", (("scale", scale), ("offset", offset)), None, 0)]


def _of_channels(tensor: Tensor) -> tuple[float, ...] | None:
    """A constant of each channel, or one of all."""
    value = tensor.constant
    if value is None or value.size != (value.shape[-1] if value.ndim else 1):
        return None
    return tuple(float(each) for each in value.reshape(-1))
