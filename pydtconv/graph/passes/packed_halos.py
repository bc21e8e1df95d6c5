"""Halos as vectors: operators that read windows compute on their own part of images where it lies, then on its rims.

An exchange gives an image with its halo.  Of a single image whose rows are cut that is where the image lies anyway;
else it would be a copy of the image, and of its gradient.  Pooling gets vectors of a single image's rows, too: its
gradient of the halo is then known before the others.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.ir.rewriting import consumers, results
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.exchange import Exchange
from pydtconv.ops.halo import Halo, inside, rims
from pydtconv.ops.layout import Box
from pydtconv.ops.pooling import AveragePool, MaxPool, WindowPool

#: what reads no halo is so many times the rims, or so many times `Thresholds.halo_pixels`, where rims save time
_FEW = 24


def pack_halos(graph: Graph) -> None:
    """Where all readers of a halo can, they get it as a vector, and the image itself."""
    readers, ends = consumers(graph), results(graph)
    for node in graph.nodes:
        op = node.op
        if not isinstance(op, Exchange) or op.packed or node.outputs[0] in ends:
            continue
        x = node.inputs[0].spec
        reading = readers.get(node.outputs[0], ())
        lies_there = None not in x.shape and op.place_of_input(x) is not None
        if None in x.shape or (lies_there and not all(isinstance(reader.op, WindowPool) for reader in reading)):
            continue
        found = {reader: _halo(op, x, reader, node.outputs[0]) for reader in reading}
        if found and all(halo is not None for halo in found.values()):
            _pack(graph, node, found)


def _pack(graph: Graph, node: Node, found: dict[Node, Halo | None]) -> None:
    (x,) = node.inputs
    node.op = dataclasses.replace(node.op, packed=True)  # type: ignore[type-var]
    spec = node.op.infer(x.spec)
    assert isinstance(spec, Spec)
    node.outputs = (Tensor(graph, spec, node.outputs[0].name, node),)
    for reader, halo in found.items():
        assert halo is not None
        reader.op = dataclasses.replace(reader.op, halo=halo, padding=_surrounding(halo))  # type: ignore[type-var]
        reader.inputs = (x, *reader.inputs[1:], node.outputs[0])


def _surrounding(halo: Halo) -> tuple[tuple[int, int], ...]:
    """The padding in which an operator sees its own part."""
    whole: Any = halo.whole
    return tuple(
        (before + start, after + extent - stop)
        for (before, after), (start, stop), extent in zip(whole.padding, halo.own, halo.extents, strict=True)
    )


def _halo(exchange: Exchange, x: Spec, reader: Node, image: Tensor) -> Halo | None:
    """What the reader of an image gets in its place; None where it has to read the image."""
    op: Any = reader.op
    if not isinstance(op, (Conv, DepthwiseConv, MaxPool, AveragePool)) or not isinstance(op.padding, tuple):
        return None
    if reader.inputs[0] is not image or image in reader.inputs[1:] or op.halo is not None:
        return None
    if isinstance(op, AveragePool) and not op.count_include_pad and any(map(any, op.padding)):
        return None  # zeros around the part would count, those around the image not
    held, need = exchange.held[exchange.index], exchange.need[exchange.index]
    if any(old[0] < new[0] or old[1] > new[1] for new, old in zip(need, held, strict=True)):
        return None
    rank = len(x.shape) - 2
    if any(axis not in range(1, rank + 1) for axis in exchange.axes):
        return None
    others = [box for other, box in exchange.received if other != exchange.index]
    own = _local(exchange, held, need, x)
    pieces = tuple(_local(exchange, box, need, x) for box in others)
    halo = Halo(x, own, tuple(n or 0 for n in image.shape[1:-1]), pieces, op)
    return halo if pieces and _pays(halo, op, reader) else None


def _local(exchange: Exchange, box: Box, need: Box, x: Spec) -> Box:
    """A box of the exchange's axes as one of all image axes, from the start of what is read on."""
    found = [(0, extent or 0) for extent in x.shape[1:-1]]
    for axis, (start, stop), (first, _) in zip(exchange.axes, box, need, strict=True):
        found[axis - 1] = (start - first, stop - first)
    return tuple(found)


def _pays(halo: Halo, op: Op, reader: Node) -> bool:
    """Whether most outputs read nothing of the halo, and are so many that rims cost little beside them."""
    y, filters = reader.outputs[0].spec, [tensor.spec for tensor in reader.inputs[1:2] if op.passes]
    outputs = [n or 0 for n in y.shape[1:-1]]
    kept, found = inside(halo, outputs, *filters), rims(halo, outputs, *filters)
    if kept is None or not found:
        return False
    for axis, sides in enumerate(_surrounding(halo), 1):
        window = op.window(axis, halo.read, *filters)
        assert window is not None
        if max(sides) >= window.reach:
            return False
    images, pixels = y.shape[0] or 1, _pixels(kept)
    least = reader.outputs[0].graph.thresholds.halo_pixels
    few = min(_FEW * images * sum(_pixels(rim.out) for rim in found), _FEW * least)
    return 2 * pixels >= math.prod(outputs) and images * pixels >= max(least, few)


def _pixels(box: Box) -> int:
    return math.prod(stop - start for start, stop in box)
