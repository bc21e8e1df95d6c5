"""Which of forward's tensors share a storage, and as which part of it.

Four ways of sharing, each a child -> parent link that `Sharing.view` follows to the root:
 - a view operator's output (reshape) is its input;
 - the inputs of a concatenation along the channels are slices of its output, so that nothing is copied;
 - the input of an exchange of halos lies within its output, where it is dense there;
 - an operator that can work in place takes over an input that nobody reads afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydtconv import dtypes
from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.memory.storage import Storage, View, dense_strides
from pydtconv.ops.base import is_image

#: read after the forward pass: retained for backward, or a result
FOREVER = 1 << 30


def parts_of(node: Node, whole: View) -> list[View]:
    """The parts of a concatenation's output (or of its gradient) that belong to its inputs."""
    parts, channel = [], 0
    for tensor in node.inputs:
        parts.append(whole.part((*[0] * (len(tensor.shape) - 1), channel), tensor.spec))
        channel += tensor.shape[-1] or 0
    return parts


class Sharing:
    """The views of all forward tensors.

    retained: tensors that backward reads.  elided: tensors that are not materialized, and what is read instead.
    """

    def __init__(self, graph: Graph, retained: Iterable[Tensor], elided: Mapping[Tensor, Tensor]) -> None:
        self.graph = graph
        self.elided = elided
        self.inputs = set(graph.inputs.values())  # which are copied to where they lie
        self.last_read: dict[Tensor, int] = {}
        self.consumers: dict[Tensor, list[Node]] = {}
        for index, node in enumerate(graph.nodes):
            for tensor in node.inputs:
                self.last_read[elided.get(tensor, tensor)] = index
                self.consumers.setdefault(tensor, []).append(node)
        for tensor in [*retained, *graph.outputs.values(), *([graph.loss] if graph.loss else [])]:
            self.last_read[tensor] = FOREVER
        #: with the bytes from the parent's start to the child's, and whether the child is a slice of its channels
        self.parent: dict[Tensor, tuple[Tensor, int, bool]] = {}
        self.roots: dict[Tensor, Storage] = {}
        self.members: dict[Tensor, list[Tensor]] = {}
        self._views: dict[Tensor, View] | None = None  # once all is linked
        self.dense = self._tensors_that_must_be_dense()
        self._share_views()
        for node in graph.nodes:
            self._share_halos(node)
        for node in graph.nodes:
            if joins_channels(node):
                self._share_concatenation(node)
        for index, node in enumerate(graph.nodes):
            self._share_inplace(index, node)
        self._views = {}

    # -- links -----------------------------------------------------------------------------------------------------

    def _root(self, tensor: Tensor) -> tuple[Tensor, int, bool]:
        """The tensor at the end of the links, where in bytes this one begins in it, and whether it is a slice of it."""
        passed = []
        while tensor in self.parent:
            passed.append(tensor)
            tensor = self.parent[tensor][0]
        offset, is_slice = 0, False
        for each in reversed(passed):  # which then link to the root: chains of many operators stay quick to follow
            _, more, slices = self.parent[each]
            offset, is_slice = offset + more, is_slice or slices
            self.parent[each] = tensor, offset, is_slice
        return tensor, offset, is_slice

    def _link(self, child: Tensor, parent: Tensor, offset: int = 0, is_slice: bool = False) -> None:
        self.parent[child] = (parent, offset, is_slice)
        root, *_ = self._root(parent)
        self.members.setdefault(root, [root]).extend(self.members.pop(child, [child]))

    def _is_ours(self, tensor: Tensor) -> bool:
        """Whether the tensor lies in the arena and was computed by a node (inputs and parameters must not change)."""
        return tensor.node is not None

    def _tensors_that_must_be_dense(self) -> set[Tensor]:
        dense: set[Tensor] = set()
        for node in self.graph.nodes:
            if node.op.is_view or node.op.dense:
                dense.update(node.inputs)
                dense.update(node.outputs)
            dense.update(node.inputs[i] for i in node.op.dense_inputs if i < len(node.inputs))
        return dense

    def _share_views(self) -> None:
        for node in self.graph.nodes:
            if node.op.is_view:
                self._link(node.outputs[0], node.inputs[0])

    def _share_halos(self, node: Node) -> None:
        place = node.op.place_of_input(node.inputs[0].spec) if node.inputs else None
        if place is None or node.outputs[0] in self.elided:
            return
        if not self._is_ours(node.inputs[0]) and node.inputs[0] not in self.inputs:
            return
        if node.inputs[0] not in self.parent and node.outputs[0] not in self.parent:
            self._link(node.inputs[0], node.outputs[0], place)
            self.dense.add(node.outputs[0])  # the place is that in a dense array

    def _share_concatenation(self, node: Node) -> None:
        whole = node.outputs[0]
        channel = 0
        for tensor in node.inputs:
            free = self._is_ours(tensor) and tensor not in self.parent and tensor not in self.dense
            root, *_ = self._root(whole)
            if free and root is not tensor and is_image(tensor.shape):
                self._link(tensor, whole, channel * dtypes.itemsize(tensor.dtype), is_slice=True)
            channel += tensor.shape[-1] or 0

    def _share_inplace(self, index: int, node: Node) -> None:
        single = len(node.outputs) - node.op.auxiliary == 1
        if node.op.is_view or not single or node.outputs[0] in self.elided:
            return
        out = node.outputs[0]
        for i in node.op.inplace:
            if i >= len(node.inputs):
                continue
            tensor = node.inputs[i]
            if tensor in self.elided:
                continue
            root = self._root(tensor)
            if tensor.spec != out.spec or not self._is_ours(root[0]) or root == self._root(out):
                continue
            if self._reads_twice(node, i) or not self._nobody_reads_after(index, tensor, out):
                continue
            dense = out in self.dense and self.view(tensor).is_slice
            if out not in self.parent and out not in self.members and not dense:
                self._link(out, tensor)
            elif tensor not in self.parent and tensor not in self.members and tensor not in self.dense:
                self._link(tensor, out)
            else:
                continue
            return

    def _reads_twice(self, node: Node, i: int) -> bool:
        """Whether a node reads elements of input `i` through another input as well."""
        mine = self.view(node.inputs[i])
        others = [self.elided.get(tensor, tensor) for j, tensor in enumerate(node.inputs) if j != i]
        return any(self.view(tensor).overlaps(mine) for tensor in others)

    def _nobody_reads_after(self, index: int, tensor: Tensor, out: Tensor) -> bool:
        """Whether no tensor that shares an element with this one is read after node `index`, except by `out`."""
        mine = self.view(tensor)
        root, *_ = self._root(tensor)
        for other in self.members.get(root, [root]):
            if other is not out and self.last_read.get(other, -1) > index and self.view(other).overlaps(mine):
                return False
        return True

    def unshared(self, tensor: Tensor) -> View | None:
        """The view of a tensor that is kept for backward alone, if it shares its storage with no other."""
        ends = {*self.graph.outputs.values(), self.graph.loss}
        kept = self.last_read.get(tensor) == FOREVER and tensor not in ends
        alone = tensor not in self.parent and tensor not in self.members and self._is_ours(tensor)
        return self.view(tensor) if kept and alone else None

    # -- result ----------------------------------------------------------------------------------------------------

    def view(self, tensor: Tensor) -> View:
        """Where a tensor lies; parameters and constants are their own buffers and those of their views."""
        if self._views is None:
            return self._view(tensor)
        if tensor not in self._views:
            self._views[tensor] = self._view(tensor)
        return self._views[tensor]

    def _view(self, tensor: Tensor) -> View:
        root, offset, is_slice = self._root(tensor)
        if root.variable is not None or root.constant is not None:
            return View(root, tensor.spec)
        if root not in self.roots:
            kind = "activation" if root.node is not None else "input"
            self.roots[root] = Storage(root.name, kind, root.spec.nbytes)
        storage = self.roots[root]
        if not is_slice:
            return View(storage, tensor.spec, offset)
        strides = dense_strides(root.spec)
        return View(storage, tensor.spec, offset, None if strides == dense_strides(tensor.spec) else strides)
