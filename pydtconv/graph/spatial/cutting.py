"""Makes a graph that of one process of a mesh: its tensors are cut, and brought to where operators read them.

Each tensor has a layout: for each of its axes, along which mesh axis it is cut and where.  What differs between the
layout that a tensor has and the one that an operator reads is an exchange: a halo, another partition, or, where the
axis is to be whole, all of it.  Processes that hold the same elements hold copies, each with a gradient of its own;
the gradient is the sum of those, as it is for variables.

Scalars are whole, or "partial": their sum over the processes of a group is what one process would have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.spatial.partition import COLUMNS, Partition, axis_of
from pydtconv.ops.base import Op, Spec, is_image
from pydtconv.ops.exchange import Exchange
from pydtconv.ops.layout import Box, Intervals, balanced
from pydtconv.ops.loss_sums import WeightedSum
from pydtconv.ops.reduction import Sum
from pydtconv.ops.shape import Reshape


@dataclass(frozen=True)
class Cut:
    """An axis of a tensor, cut along a mesh axis: the interval that each process along that has."""

    mesh: str
    parts: Intervals


#: for each axis of a tensor how it is cut; None where it is whole
Layout = tuple[Cut | None, ...]


@dataclass(frozen=True)
class Placement:
    """Where an input or a result of a plan lies in that of one process.

    shape: of the whole.  box: this process's part.  counts: whether it is among those whose parts together are the
    whole, each element once; others hold copies.
    """

    shape: tuple[int, ...]
    box: Box
    counts: bool

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(start, stop) for start, stop in self.box)

    @property
    def is_whole(self) -> bool:
        return all(part == (0, extent) for part, extent in zip(self.box, self.shape, strict=True))

    @property
    def portion(self) -> float:
        """What part of a sample's elements lies in this process's part."""
        return math.prod(stop - start for start, stop in self.box[1:]) / math.prod(self.shape[1:])


class CannotCutError(ValueError):
    """An operator that cannot run on a part of an image."""


class Cutting:
    """A graph on its way from one process's to that of one among several.

    Rules (rules.py) take nodes one after the other; `add` makes the local ones.
    """

    def __init__(self, graph: Graph) -> None:
        assert isinstance(graph.partition, Partition)
        self.graph = graph
        self.partition: Partition = graph.partition
        self.nodes: list[Node] = []
        self.layouts: dict[Tensor, Layout] = {}
        self.partial: set[Tensor] = set()
        self._local: dict[Tensor, Tensor] = {}
        self._free = {tensor: name for name, tensor in graph.inputs.items()}
        self._brought: dict[tuple[Tensor, Layout], Tensor] = {}
        self._parts: dict[Tensor, Tensor] = {}
        self._scope = ""
        self._name = ""
        cut = set(map(id, graph.cut_variables))
        for tensor in graph.parameters:
            if id(tensor.variable) in cut:
                self._cut_columns(tensor)

    # -- tensors -----------------------------------------------------------------------------------------------------

    def local(self, tensor: Tensor) -> Tensor:
        """The local tensor; an input that nothing has cut yet is cut as an image."""
        if tensor in self._free:
            self._place(tensor, self.default(tensor.spec))
        found = self._local.get(tensor, tensor)
        self.layouts.setdefault(found, (None,) * len(found.shape))
        return found

    def layout(self, tensor: Tensor) -> Layout:
        """The layout of a tensor of the whole graph."""
        return self.layouts[self.local(tensor)]

    def default(self, spec: Spec) -> Layout:
        """The layout of an image: cut evenly along each axis of the mesh that it is long enough for."""
        layout: list[Cut | None] = [None] * len(spec.shape)
        for mesh in self.partition.cut if is_image(spec.shape) else ():
            axis = axis_of(mesh, len(spec.shape))
            if axis is not None and (spec.shape[axis] or 0) >= self.partition.extent(mesh):
                layout[axis] = Cut(mesh, balanced(spec.shape[axis] or 0, self.partition.extent(mesh)))
        return tuple(layout)

    def mesh_along(self, axis: int, rank: int) -> str | None:
        """The mesh axis that cuts an axis of images of `rank` dimensions; None where there is none."""
        return next((mesh for mesh in self.partition.cut if axis_of(mesh, rank) == axis), None)

    def whole(self, rank: int) -> Layout:
        return (None,) * rank

    def box(self, layout: Layout, shape: Sequence[int | None], rank: int | None = None) -> Box:
        """The part of a tensor of this shape that a process has, this one by default."""
        return tuple(
            (0, extent or 0) if cut is None else cut.parts[self.partition.coordinate(cut.mesh, rank)]
            for cut, extent in zip(layout, shape, strict=True)
        )

    def part(self, cut: Cut) -> tuple[int, int]:
        """The interval of a cut axis that this process has."""
        return cut.parts[self.partition.coordinate(cut.mesh)]

    def _cut_columns(self, tensor: Tensor) -> None:
        """Leaves this process its columns of a variable."""
        assert tensor.variable is not None
        cut = Cut(COLUMNS, balanced(tensor.shape[-1] or 0, self.partition.extent(COLUMNS)))
        layout = (*(None,) * (len(tensor.shape) - 1), cut)
        shape = tuple(stop - start for start, stop in self.box(layout, tensor.shape))
        local = self._local[tensor] = self.graph.cut_parameter(tensor.variable, shape)
        self.layouts[local] = layout

    def join_columns(self, tensor: Tensor) -> None:
        """Makes columns whole, for all that reads them from here on."""
        if tensor not in self._free:
            layout = self.layout(tensor)
            joined = tuple(None if cut is not None and cut.mesh == COLUMNS else cut for cut in layout)
            if joined != layout:
                self._local[tensor] = self.moved(self.local(tensor), joined, tensor.shape)

    def _place(self, tensor: Tensor, layout: Layout) -> None:
        """Makes an input that of this process."""
        name = self._free.pop(tensor)
        box = self.box(layout, tensor.shape)
        local = tensor
        if any(layout):
            spec = Spec(tuple(stop - start for start, stop in box), tensor.dtype)
            local = Tensor(self.graph, spec, tensor.name)
            self.graph.inputs[name] = local
        self.graph.placements[name] = Placement(tuple(n or 0 for n in tensor.shape), box, self._counts(layout))
        self._local[tensor] = local
        self.layouts[local] = layout

    def _counts(self, layout: Layout) -> bool:
        """Whether this process is the first of those that hold its part of a tensor."""
        used = {cut.mesh for cut in layout if cut is not None}
        return all(self.partition.coordinate(mesh) == 0 for mesh in self.partition.sharing(used))

    def portion(self, layout: Layout, shape: Sequence[int | None]) -> float:
        """This process's portion of all elements, copies counted, that the processes of its group have."""
        sizes = {rank: _size(self.box(layout, shape, rank)) for rank in self.partition.group}
        return sizes[self.partition.rank] / sum(sizes.values())

    def copies(self, layout: Layout) -> int:
        """How many processes of a group hold each element."""
        used = {cut.mesh for cut in layout if cut is not None}
        return math.prod(self.partition.extent(mesh) for mesh in self.partition.sharing(used))

    # -- nodes -------------------------------------------------------------------------------------------------------

    def begin(self, node: Node) -> None:
        """The node whose rule runs next; what is added has its name and its place."""
        self._scope, self._name = node.scope, node.name

    def add(self, op: Op, inputs: Sequence[Tensor], *layouts: Layout, name: str = "") -> tuple[Tensor, ...]:
        """A local node; layouts: of its outputs, the last one for all that follow."""
        node = Node(self.graph, op, tuple(inputs), self._scope)
        node.name = f"{self._name}{name}"
        self.nodes.append(node)
        for index, tensor in enumerate(node.outputs):
            tensor.name = f"{node.name}:{index}"
            self.layouts[tensor] = layouts[min(index, len(layouts) - 1)]
        return node.outputs

    def set(self, node: Node, outputs: Sequence[Tensor]) -> None:
        """Notes what has become of a node's outputs."""
        self._local.update(zip(node.outputs, outputs, strict=True))

    def keep(self, node: Node, op: Op, inputs: Sequence[Tensor], *layouts: Layout) -> tuple[Tensor, ...]:
        """The node with this operator on local inputs."""
        outputs = self.add(op, inputs, *layouts)
        self.set(node, outputs)
        return outputs

    def bring(self, tensor: Tensor, layout: Layout, shape: Sequence[int | None] | None = None) -> Tensor:
        """The tensor of the whole graph in another layout; an input that nothing has cut yet is cut so."""
        if tensor in self._free and _is_partition(layout, tensor.shape):
            self._place(tensor, layout)
        return self.moved(self.local(tensor), layout, tensor.shape if shape is None else shape)

    def moved(self, local: Tensor, layout: Layout, shape: Sequence[int | None]) -> Tensor:
        """A local tensor, whose whole has this shape, in another layout."""
        now = self.layouts[local]
        key = (local, layout)
        if now == layout:
            return local
        if key not in self._brought:
            axes = tuple(i for i, (old, new) in enumerate(zip(now, layout, strict=True)) if old != new)
            axes = tuple(sorted({*axes, *(i for i, cut in enumerate(now) if cut is not None)}))
            held, need = (
                tuple(tuple(self.box(each, shape, rank)[axis] for axis in axes) for rank in self.partition.group)
                for each in (now, layout)
            )
            label = _label(now, layout)
            producer = local.node.name if local.node is not None else local.name
            op = Exchange(axes, held, need, self.partition.index, label, producer)
            found = self.add(op, (local,), layout)[0]
            assert found.node is not None
            found.node.name = f"{label} {producer}"
            self._brought[key] = found
        return self._brought[key]

    def wholes(self, tensor: Tensor, axes: Sequence[int] | None = None) -> Tensor:
        """The tensor with these axes whole, all by default."""
        if tensor in self._free:
            layout = self.default(tensor.spec)
        else:
            layout = self.layout(tensor)
        kept = tuple(None if axes is None or i in axes else cut for i, cut in enumerate(layout))
        return self.bring(tensor, kept)

    # -- scalars -----------------------------------------------------------------------------------------------------

    def scaled(self, tensor: Tensor, factor: float) -> Tensor:
        """A scalar times a constant."""
        return tensor if factor == 1 else self.add(WeightedSum((factor,)), (tensor,), (), name=" portion")[0]

    def as_partial(self, tensor: Tensor) -> Tensor:
        """The scalar as this process's part of it."""
        if tensor in self.partial:
            return tensor
        if tensor not in self._parts:
            self._parts[tensor] = self.scaled(tensor, 1 / len(self.partition.group))
            self.partial.add(self._parts[tensor])
        return self._parts[tensor]

    def as_whole(self, tensor: Tensor) -> Tensor:
        """The sum of a scalar's parts, in every process."""
        if tensor not in self.partial:
            return tensor
        count = len(self.partition.group)
        held, need = tuple(((i, i + 1),) for i in range(count)), (((0, count),),) * count
        (row,) = self.add(Reshape((1,)), (tensor,), (None,), name=" part")
        gather = Exchange((0,), held, need, self.partition.index, "gather", self._name)
        (every,) = self.add(gather, (row,), (None,), name=" gather")
        return self.add(Sum(), (every,), (), name=" sum")[0]

    def sum_parts(self, tensor: Tensor) -> None:
        """Makes a scalar of the whole graph whole, where it is partial, for all that reads it from here on."""
        local = self._local.get(tensor, tensor)
        if local in self.partial:
            self._local[tensor] = self.as_whole(local)

    def _made_whole(self, local: Tensor, shape: Sequence[int | None]) -> Tensor:
        """All of a result, in every process."""
        return self.moved(local, self.whole(len(shape)), shape) if shape else self.as_whole(local)

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Puts the local nodes into the graph, and notes where its results lie."""
        graph = self.graph
        for tensor in list(self._free):
            self._place(tensor, self.whole(len(tensor.shape)))
        outputs = {}
        for name, tensor in graph.outputs.items():
            self.join_columns(tensor)
            local = self.local(tensor)
            if graph.whole_results:
                local = self._made_whole(local, tensor.shape)
            elif not tensor.shape:
                local = self.as_partial(local) if _is_loss(name) else local
            else:
                layout = self.layouts[local]
                shape = tuple(n or 0 for n in tensor.shape)
                graph.placements[name] = Placement(shape, self.box(layout, shape), self._counts(layout))
            outputs[name] = local
        graph.outputs = outputs
        if graph.loss is not None:
            graph.loss = self.as_partial(self.local(graph.loss))
        graph.nodes[:] = self.nodes


def _is_loss(name: str) -> bool:
    return name == "loss" or name.startswith("loss_")


def _size(box: Box) -> int:
    count = 1
    for start, stop in box:
        count *= stop - start
    return count


def _is_partition(layout: Layout, shape: Sequence[int | None]) -> bool:
    """Whether each element lies in one interval of each cut axis."""
    for cut, extent in zip(layout, shape, strict=True):
        if cut is not None:
            ends = [0, *(stop for _, stop in cut.parts)]
            if ends[-1] != extent or any(start != end for (start, _), end in zip(cut.parts, ends, strict=False)):
                return False
    return True


def _label(now: Layout, then: Layout) -> str:
    """What an exchange is for, in tables."""
    if any(old is not None and new is None for old, new in zip(now, then, strict=True)):
        return "gather"
    if all(old is None for old in now):
        return "scatter"
    inside = all(
        old is None
        or new is None
        or all(a <= c and b >= d for (a, b), (c, d) in zip(new.parts, old.parts, strict=True))
        for old, new in zip(now, then, strict=True)
    )
    return "halo" if inside else "repartition"
