"""What is split into patches, and which elements of each tensor they hold.  See patches.py and patch_borders.py."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.ir.rewriting import consumers, results
from pydtconv.graph.passes.patch_borders import Interval, Settings, Starts, bounds, drawn, even, needed
from pydtconv.ops.activation import Activation, Bias
from pydtconv.ops.arithmetic import Add, Binary
from pydtconv.ops.base import Window
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.pooling import AveragePool, MaxPool
from pydtconv.ops.random import Dropout
from pydtconv.ops.resize import Pad
from pydtconv.ops.shape import Cast

AXES = (1, 2)
CONVOLUTIONS = (Conv, DepthwiseConv)
WINDOWS = (*CONVOLUTIONS, MaxPool, AveragePool)
THROUGH = (Activation, Bias, Add, Binary, BatchNorm, Dropout, Cast)

Intervals = tuple[Interval, Interval]  # along rows and columns


class Region:
    """The operators that are split: all that lies between two tensors.  nodes: in order, from `start` to `end`."""

    def __init__(self, nodes: list[Node], start: Tensor, end: Tensor) -> None:
        self.nodes = nodes
        self.members = set(nodes)
        self.start = start
        self.end = end

    @classmethod
    def of(cls, graph: Graph, split: Settings) -> Region | None:
        """The operators up to the tensor behind which the share of convolutions is nearest to `split.depth`."""
        total = sum(isinstance(node.op, CONVOLUTIONS) for node in graph.nodes)
        wanted = round(split.depth * total)
        first = next((i for i, node in enumerate(graph.nodes) if isinstance(node.op, CONVOLUTIONS)), None)
        if first is None or not wanted:
            return None
        while first and splittable(graph.nodes[first - 1], split) and isinstance(graph.nodes[first - 1].op, Pad):
            first -= 1
        readers, ends = consumers(graph), results(graph)
        start = graph.nodes[first].inputs[0]
        nodes: list[Node] = []
        live, fixed = {start}, _fixed(graph)
        count, best = 0, None
        for node in graph.nodes[first:]:
            reads = {tensor for tensor in node.inputs if tensor not in fixed} | set(images_of(node))
            if not splittable(node, split) or not live.issuperset(reads):
                continue  # what it reads of the patches would have to be rejoined: that is no end while it is so
            nodes.append(node)
            count += isinstance(node.op, CONVOLUTIONS)
            inside = set(nodes)
            live.update(node.outputs)
            open_ends = [
                tensor
                for tensor in live
                if tensor in ends or any(reader not in inside for reader in readers.get(tensor, ()))
            ]
            if open_ends == [node.outputs[0]]:
                distance = abs(count - wanted)
                if best is None or distance <= best[0]:
                    best = (distance, len(nodes))
        return None if best is None else cls(nodes[: best[1]], start, nodes[best[1] - 1].outputs[0])


def _fixed(graph: Graph) -> set[Tensor]:
    """Parameters, constants, and what follows from them alone, such as parameters in another dtype."""
    fixed = {t for node in graph.nodes for t in node.inputs if t.variable is not None or t.constant is not None}
    for node in graph.nodes:
        if fixed.issuperset(node.inputs):
            fixed.update(node.outputs)
    return fixed


def splittable(node: Node, split: Settings) -> bool:
    """Whether an operator can run on patches."""
    op, out = node.op, node.outputs[0].spec
    if len(node.outputs) != 1 or len(out.shape) != 4 or not out.dtype.startswith(("float", "bfloat")):
        return False
    images = [tensor for tensor in node.inputs if len(tensor.shape) == 4 and tensor.variable is None]
    if isinstance(op, WINDOWS):
        return not getattr(op, "residual", False) and node.inputs[0] in images
    if isinstance(op, Pad):
        return op.mode == "constant" and not any(op.padding[0])
    if isinstance(op, BatchNorm) and split.exact and not op.frozen and not split.whole_statistics:
        return False  # statistics are of the whole image
    if isinstance(op, Dropout) and (split.exact or op.noise_shape is not None):
        return False
    through = isinstance(op, THROUGH) or joins_channels(node)
    fit = all(tensor.shape[1:3] == out.shape[1:3] for tensor in images)
    others = [tensor for tensor in node.inputs if tensor not in images]
    return through and fit and bool(images) and all(len(tensor.shape) <= 1 for tensor in others)


def joins(node: Node, split: Settings) -> bool:
    """Whether an operator runs on the whole image between two parts of patches: its statistics are of all patches."""
    return isinstance(node.op, BatchNorm) and not node.op.frozen and split.whole_statistics


def window_of(node: Node, axis: int) -> Window | None:
    """The window of a splittable operator along an axis; None where it passes elements through."""
    if isinstance(node.op, Pad):
        before, after = node.op.padding[axis]
        return Window(1, 1, 1, before, after)
    if not isinstance(node.op, WINDOWS):
        return None
    return node.op.window(axis, *(tensor.spec for tensor in node.inputs))


class Layout:
    """Which elements of each tensor the patches hold.

    starts: by tensor and axis, where patches begin; not for exact ones, whose intervals overlap.
    """

    def __init__(self, region: Region, split: Settings, draw: int | None) -> None:
        self.region = region
        self.split = split
        self.rng = None if draw is None else random.Random(f"patches {draw}")
        self.starts: tuple[dict[Tensor, Starts], ...] = ({}, {})
        self.held: tuple[list[dict[Tensor, Interval]], ...] = ([], [])
        for axis, count in zip(AXES, split.splits, strict=True):
            self._lay_out(axis, count)

    def intervals(self, tensor: Tensor, patch: tuple[int, int]) -> Intervals:
        """What a patch holds of a tensor."""
        rows, columns = (held[number][tensor] for held, number in zip(self.held, patch, strict=True))
        return rows, columns

    def own(self, tensor: Tensor, patch: tuple[int, int]) -> Intervals:
        """The elements of which the whole tensor is put together: patches share none of them."""
        if not self.split.exact:
            return self.intervals(tensor, patch)
        rows, columns = (self._part(tensor, axis, number) for axis, number in zip(AXES, patch, strict=True))
        return rows, columns

    def more(self, tensor: Tensor) -> float:
        """By which share more of its elements are computed than it has: exact patches overlap."""
        total = 1.0
        for axis in AXES:
            extent = tensor.shape[axis] or 0
            held = (each[tensor] for each in self.held[axis - 1])
            total *= sum(last - first for first, last in held) / extent
        return total - 1.0

    def _part(self, tensor: Tensor, axis: int, number: int) -> Interval:
        extent = tensor.shape[axis] or 0
        starts = even(extent, self.split.splits[axis - 1])
        return starts[number], (*starts, extent)[number + 1]

    def _lay_out(self, axis: int, count: int) -> None:
        end = self.region.end
        extent = end.shape[axis] or 0
        stochastic = self.split.stochastic
        starts = even(extent, count) if self.rng is None else drawn(extent, count, stochastic, self.rng)
        if self.split.exact:
            self.held[axis - 1].extend(self._exact(axis, number) for number in range(count))
            return
        found = self.starts[axis - 1]
        found[end] = starts
        limits: dict[Tensor, list[list[Interval]]] = {}
        for node in reversed(self.region.nodes):
            out = node.outputs[0]
            if out not in found:
                found[out] = self._choose(out, axis, limits[out])
            window = window_of(node, axis)
            for tensor in images_of(node):
                begins = [(o, o) if window is None else bounds(window, o) for o in found[out][1:]]
                limits.setdefault(tensor, []).append(begins)
        start = self.region.start
        found[start] = self._choose(start, axis, limits[start])
        for number in range(count):
            self.held[axis - 1].append(
                {
                    tensor: (each[number], each[number + 1] if number + 1 < count else tensor.shape[axis] or 0)
                    for tensor, each in found.items()
                }
            )

    def _choose(self, tensor: Tensor, axis: int, limits: Sequence[Sequence[Interval]]) -> Starts:
        """Begins of patches within the bounds of all readers where they have some in common, else of the strictest."""
        extent, starts = tensor.shape[axis] or 0, [0]
        for border in range(len(limits[0])):
            (low, high), *others = sorted((each[border] for each in limits), key=lambda each: each[1] - each[0])
            for other in others:
                inner = max(low, other[0]), min(high, other[1])
                if inner[0] <= inner[1]:
                    low, high = inner
            left = len(limits[0]) - border - 1  # borders behind this one
            low, high = max(low, starts[-1] + 1), min(high, extent - 1 - left)
            if low > high:
                low = high = max(min(low, extent - 1 - left), starts[-1] + 1)
            starts.append((low + high) // 2 if self.rng is None else self.rng.randint(low, high))
        if starts[-1] >= extent:
            raise ValueError(
                f"split: expected at most {extent} patches along an axis of {tensor.name} with {extent} elements, got "
                f"{len(starts)}"
            )
        return tuple(starts)

    def _exact(self, axis: int, number: int) -> dict[Tensor, Interval]:
        """What is read of each tensor for this patch's part of the last one, and of those that are put together."""
        held = {self.region.end: self._part(self.region.end, axis, number)}
        for node in reversed(self.region.nodes):
            window = window_of(node, axis)
            made = held[node.outputs[0]]
            for tensor in images_of(node):
                low, high = made if window is None else needed(window, made)
                if joins(node, self.split):
                    low, high = self._part(tensor, axis, number)
                low, high = max(low, 0), min(high, tensor.shape[axis] or 0)
                if low >= high:  # of padding alone
                    raise too_many(node)
                known = held.get(tensor, (low, high))
                held[tensor] = (min(low, known[0]), max(high, known[1]))
        return held


def images_of(node: Node) -> list[Tensor]:
    """The inputs that are split; of a window operator that is the first."""
    inputs = node.inputs[:1] if isinstance(node.op, (*WINDOWS, Pad)) else node.inputs
    return [tensor for tensor in inputs if len(tensor.shape) == 4]


def too_many(node: Node) -> ValueError:
    """The error of patches that are smaller than a window of this operator can take."""
    return ValueError(f"split: expected patches that the windows of {node.name} meet, got more and smaller ones")
