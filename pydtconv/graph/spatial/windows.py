"""Rules of the operators that read windows of images: convolutions, pooling, padding, cropping, resizing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.graph.spatial.cutting import Cut, Cutting
from pydtconv.ops.base import Window
from pydtconv.ops.convolution_transpose import ConvTranspose
from pydtconv.ops.layout import (
    Intervals,
    any_empty,
    balanced,
    scaled,
    shifted,
    window_outputs,
    window_padding,
    window_reads,
)
from pydtconv.ops.resize import Pad, Upsample
from pydtconv.ops.shape import Slice


def _mesh_of(cutting: Cutting, x: Tensor, axis: int) -> str | None:
    """The mesh axis that cuts an axis of an image, or may well do; another one than usual where x was transposed."""
    layout = cutting.layout(x)
    cut = layout[axis]
    if cut is not None:
        return cut.mesh
    mesh = cutting.mesh_along(axis, len(x.shape))
    return None if any(other is not None and other.mesh == mesh for other in layout) else mesh


def held(cutting: Cutting, x: Tensor, axis: int) -> Cut | None:
    """How an axis of an image is cut, or, where it is whole but may well be cut, how it will be; None: whole."""
    cut = cutting.layout(x)[axis]
    if cut is not None:
        return cut
    mesh, extent = _mesh_of(cutting, x, axis), x.shape[axis] or 0
    if mesh is None or extent < cutting.partition.extent(mesh):
        return None
    return Cut(mesh, balanced(extent, cutting.partition.extent(mesh)))


def _reads(window: Window, outputs: Intervals, extent: int) -> Intervals | None:
    """What is read for each part of the output; None where a part is empty or reads padding alone."""
    if any_empty(outputs):
        return None
    found = tuple(window_reads(window, part, extent) for part in outputs)
    return None if any_empty(found) else found


def window(cutting: Cutting, node: Node) -> None:
    """Convolutions and pooling: each process reads its halo, and pads where its part ends at the image's border."""
    op, x, y = node.op, node.inputs[0], node.outputs[0]
    specs = [tensor.spec for tensor in node.inputs]
    read: list[Cut | None] = [None] * len(x.shape)
    given: list[Cut | None] = [None] * len(x.shape)
    padding = []
    for axis in range(1, len(x.shape) - 1):
        walk = op.window(axis, *specs)
        assert walk is not None
        extent, outputs = x.shape[axis] or 0, y.shape[axis] or 0
        own, reads = (0, outputs), (0, extent)
        mesh, cut = _mesh_of(cutting, x, axis), held(cutting, x, axis)
        partitions = [] if mesh is None else [balanced(outputs, cutting.partition.extent(mesh))]
        if cut is not None:
            partitions.insert(0, window_outputs(walk, cut.parts, outputs))
        for parts in partitions:
            wanted = _reads(walk, parts, extent)
            if wanted is not None:
                assert mesh is not None
                given[axis], read[axis] = here, there = Cut(mesh, parts), Cut(mesh, wanted)
                own, reads = cutting.part(here), cutting.part(there)
                break
        padding.append(window_padding(walk, own, reads))
    if not any(given):
        inputs = [cutting.wholes(tensor) for tensor in node.inputs]
        cutting.keep(node, op, inputs, cutting.whole(len(y.shape)))
        return
    after = tuple(given)
    inputs = [cutting.bring(x, tuple(read))]
    parameters, images = (node.inputs[1:-1], node.inputs[-1:]) if op.residual else (node.inputs[1:], ())
    inputs += [cutting.wholes(tensor) for tensor in parameters]
    inputs += [cutting.bring(tensor, after) for tensor in images]
    changes = _transposed(padding) if isinstance(op, ConvTranspose) else {"padding": tuple(padding)}
    cutting.keep(node, dataclasses.replace(op, **changes), inputs, after)  # type: ignore[type-var]


def _transposed(cuts: Sequence[tuple[int, int]]) -> dict[str, object]:
    """What a transposed convolution is given so that these pixels are cut off, or added where they are negative."""
    added = tuple(max(-after, 0) for _, after in cuts)
    sides = tuple((before, max(after, 0)) for before, after in cuts)
    return {"padding": sides, "output_padding": added if any(added) else None}


def pad(cutting: Cutting, node: Node) -> None:
    """The first and the last process have what is added; what is mirrored must lie in their parts."""
    op, x = node.op, node.inputs[0]
    assert isinstance(op, Pad)
    layout = cutting.layout(x)
    mirrored = {"constant": None, "symmetric": 0, "reflect": 1}[op.mode]
    whole = []
    for axis, cut in enumerate(layout):
        if cut is None or mirrored is None:
            continue
        ends = zip(op.padding[axis], (cut.parts[0], cut.parts[-1]), strict=True)
        if any(count and count + mirrored > stop - start for count, (start, stop) in ends):
            whole.append(axis)
    local = cutting.wholes(x, whole) if whole else cutting.local(x)
    padding, given = list(op.padding), list(cutting.layouts[local])
    for axis, cut in enumerate(cutting.layouts[local]):
        if cut is None:
            continue
        before, after = op.padding[axis]
        first, last = cutting.part(cut)
        padding[axis] = (before if first == 0 else 0, after if last == x.shape[axis] else 0)
        given[axis] = Cut(cut.mesh, shifted(cut.parts, -before, (x.shape[axis] or 0) + before + after))
    cutting.keep(node, dataclasses.replace(op, padding=tuple(padding)), [local], tuple(given))


def crop(cutting: Cutting, node: Node) -> None:
    """A cut axis is cropped by bringing what is left; the others where they are."""
    op, x, y = node.op, node.inputs[0], node.outputs[0]
    assert isinstance(op, Slice)
    bounds = op.bounds(x.shape)
    read, given = list(cutting.layout(x)), list(cutting.layout(x))
    start, stop = list(op.start), list(op.stop)
    for axis, cut in enumerate(cutting.layout(x)):
        if cut is None:
            continue
        extent, first = y.shape[axis] or 0, bounds[axis].start or 0
        parts = shifted(cut.parts, first, extent)
        if any_empty(parts):
            parts = balanced(extent, len(parts))
        if any_empty(parts):
            read[axis] = given[axis] = None
            continue
        read[axis] = Cut(cut.mesh, tuple((a + first, b + first) for a, b in parts))
        given[axis] = Cut(cut.mesh, parts)
        start[axis], stop[axis] = 0, None
    local = cutting.bring(x, tuple(read))
    cutting.keep(node, Slice(tuple(start), tuple(stop)), [local], tuple(given))


def upsample(cutting: Cutting, node: Node) -> None:
    """Pixels are repeated; between them is interpolated with a neighbour on each side, and what is too much cut off."""
    op, x = node.op, node.inputs[0]
    assert isinstance(op, Upsample)
    read: list[Cut | None] = [None] * len(x.shape)
    given: list[Cut | None] = [None] * len(x.shape)
    start: list[int] = [0] * len(x.shape)
    stop: list[int | None] = [None] * len(x.shape)
    near = op.interpolation != "nearest"
    for axis, factor in enumerate(op.size, 1):
        cut, extent = held(cutting, x, axis), x.shape[axis] or 0
        if cut is None:
            continue
        parts = tuple((max(a - near, 0), min(b + near, extent)) for a, b in cut.parts)
        read[axis], given[axis] = Cut(cut.mesh, parts), Cut(cut.mesh, scaled(cut.parts, factor))
        (a, b), (first, last) = cutting.part(cut), cutting.part(Cut(cut.mesh, parts))
        start[axis] = (a - first) * factor
        stop[axis] = (b - first) * factor if b != last else None
    local = cutting.bring(x, tuple(read))
    if not near or not any(given):
        cutting.keep(node, op, [local], tuple(given))
        return
    (wide,) = cutting.add(op, [local], tuple(given), name=" wide")
    if any(start) or any(end is not None for end in stop):
        (wide,) = cutting.add(Slice(tuple(start), tuple(stop)), [wide], tuple(given))
    cutting.set(node, [wide])


RULES = (window, pad, crop, upsample)
