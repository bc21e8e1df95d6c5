"""Rematerialization: which tensors backward computes once more instead of finding them stored, and where these lie.

Such a tensor is not kept from forward to backward.  Before the first step of backward that reads it, a recompute step
writes it again to memory of its own, from what its node read; of that, what is not kept either is recomputed first.
(T. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016; G. Pleiss et al., "Memory-Efficient
Implementation of DenseNets", 2017.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from pydtconv.dtypes import FLOATING
from pydtconv.graph.ir.graph import Graph, Node, Tensor, base_of, joins_channels, replay_flops
from pydtconv.graph.ir.rewriting import updated_state
from pydtconv.graph.memory.sharing import Sharing, parts_of
from pydtconv.graph.memory.storage import View

#: tensors smaller than this are stored: a step of their own would cost more than it gains
SMALLEST = 1 << 16
#: of cheap tensors that depend on each other, those in a row before one is stored
LONGEST_ROW = 4
#: what a little arithmetic makes of a plan's inputs: its bytes at least, those of the inputs as a share of them, and
#: floating-point operations for each byte.  A first layer of 3 x 3 pixels of three colors has 14 (float32)
LEAST_GAIN, SMALL_SOURCE, FLOPS_A_BYTE = 1 << 22, 0.5, 32


def sources_of(node: Node, elided: Mapping[Tensor, Tensor]) -> list[Tensor]:
    """The tensors, other than parameters and constants, that recomputing a node's output reads.

    elided: tensors that are not materialized, and what is read instead.
    """
    read = node.op.replay_inputs
    inputs = node.inputs if read is None or joins_channels(node) else [node.inputs[i] for i in read]
    bases = [base_of(elided.get(tensor, tensor)) for tensor in inputs]
    return [tensor for tensor in bases if tensor.variable is None and tensor.constant is None]


def recomputable(graph: Graph, tensor: Tensor, state: Collection[Tensor]) -> bool:
    """Whether the tensor can be computed twice in a step; state: `updated_state(graph)`."""
    node = tensor.node
    if node is None or node.op.is_view or tensor in graph.outputs.values():
        return False
    if len(node.outputs) - node.op.auxiliary != 1 or tensor is not node.outputs[0]:
        return False
    if joins_channels(node):
        return True
    read = node.op.replay_inputs
    if state and any(base_of(x) in state for x in (node.inputs if read is None else [node.inputs[i] for i in read])):
        return False
    touches_state = bool(node.op.updates) and not node.op.replay_keeps_state
    return node.op.replayable and not touches_state and tensor.dtype in FLOATING


def cheap_tensors(graph: Graph, retained: Collection[Tensor]) -> set[Tensor]:
    """Tensors that one pass over memory brings back from what is kept for backward anyway, or not much more than one.

    These are results of element-wise operators, normalizations and poolings, and those of first layers that read few
    pixels of few channels, where these do not lie in a concatenation that is kept.
    retained: what backward reads.  Where many of these depend on each other in a row (the blocks of a residual
    network), one is stored after every LONGEST_ROW.
    """
    kept = {base_of(tensor) for tensor in retained}
    joined = {each for node in graph.nodes if joins_channels(node) and node.outputs[0] in kept for each in node.inputs}
    state = updated_state(graph)
    found: dict[Tensor, int] = {}  # the length of the row up to the tensor
    for node in graph.nodes:
        out = node.outputs[0]
        if not recomputable(graph, out, state) or out.spec.nbytes < SMALLEST:
            continue
        sources = sources_of(node, graph.elided)
        if flops := replay_flops(node):
            if out not in joined and _is_little(flops, sources, out):
                found[out] = 0
            continue
        if all(tensor in found or tensor in kept for tensor in sources):
            row = 1 + max((found[t] - (t not in kept) for t in sources if t in found), default=0)
            if row <= LONGEST_ROW:
                found[out] = row
    return set(found)


def _is_little(flops: int, sources: Collection[Tensor], out: Tensor) -> bool:
    """Whether so much arithmetic, on inputs of the plan, is little beside the memory that is free until backward."""
    nbytes = out.spec.nbytes
    inputs = all(tensor.node is None for tensor in sources)
    small = sum(tensor.spec.nbytes for tensor in sources) <= SMALL_SOURCE * nbytes
    return inputs and small and nbytes >= LEAST_GAIN and flops <= FLOPS_A_BYTE * nbytes


class LaysOutSteps(Protocol):
    """What lays out the steps that compute again: the scheduler."""

    sharing: Sharing

    def transient(self, tensor: Tensor) -> View: ...
    def recompute(self, node: Node, x: tuple[View | None, ...], y: View) -> None: ...
    def copy(self, node: Node, x: View, y: View) -> None: ...


class Rematerialization:
    """The recomputed tensors of a schedule.

    chosen: tensors that are not to be kept.  readers: for each tensor that backward reads, the number of nodes whose
    backward does.
    After construction, `kept` are the tensors that forward leaves for backward, `needed` those that are recomputed.
    """

    def __init__(self, graph: Graph, chosen: Collection[Tensor], readers: Mapping[Tensor, int]) -> None:
        self.kept: set[Tensor] = set()
        self.needed: dict[Tensor, None] = {}
        self.readers: dict[Tensor, int] = {}
        self._elided = graph.elided
        state = updated_state(graph)
        self._chosen = {tensor for tensor in chosen if recomputable(graph, tensor, state)}
        self._views: dict[Tensor, View] = {}  # of what has been recomputed, and is not overwritten yet
        self._done: set[Tensor] = set()  # what has been recomputed
        for tensor, count in readers.items():
            base = base_of(tensor)
            self.readers[base] = self.readers.get(base, 0) + count
            self._need(tensor)

    def _need(self, tensor: Tensor) -> None:
        base = base_of(tensor)
        if base not in self._chosen:
            self.kept.add(tensor)
        elif base not in self.needed:
            self.needed[base] = None
            assert base.node is not None
            for source in sources_of(base.node, self._elided):
                self.readers[source] = self.readers.get(source, 0) + 1
                self._need(source)

    def late_saves(self, node: Node) -> tuple[str, ...]:
        """Names of the saved arrays that are written when the node's output is recomputed."""
        return node.op.replay_saves if node.outputs[0] in self.needed else ()

    def view(self, tensor: Tensor, scheduler: LaysOutSteps) -> View:
        """Where a tensor lies in backward; one that is not kept has been computed again there, or is so now."""
        base = base_of(tensor)
        if base not in self.needed:
            return scheduler.sharing.view(tensor)
        if base not in self._views:
            self._recompute(base, None, scheduler)
        view = self._views[base]
        return view if base is tensor else View(view.buffer, tensor.spec, view.offset)

    def bring_saves_back(self, node: Node, scheduler: LaysOutSteps) -> None:
        """Has `late_saves` written, where that has not been done; the output may be overwritten since."""
        if self.late_saves(node) and node.outputs[0] not in self._done:
            self.view(node.outputs[0], scheduler)

    def _recompute(self, tensor: Tensor, target: View | None, scheduler: LaysOutSteps) -> None:
        """Computes a tensor again, into `target` or memory of its own."""
        node = tensor.node
        assert node is not None
        self._done.add(tensor)
        if joins_channels(node):
            self._join(node, target or scheduler.transient(tensor), scheduler)
            return
        read = node.op.replay_inputs
        inputs = [self._elided.get(t, t) for t in node.inputs]
        x = [self.view(t, scheduler) if read is None or i in read else None for i, t in enumerate(inputs)]
        if target is None:
            target = self._over_input(node, x) or scheduler.transient(tensor)
        self._views[tensor] = target
        scheduler.recompute(node, tuple(x), target)

    def _over_input(self, node: Node, x: list[View | None]) -> View | None:
        """Where a recomputed input lies that nobody else reads, if the operator works in place."""
        for i in node.op.inplace:
            if i >= len(x):
                continue
            tensor, view = node.inputs[i], x[i]  # not what is read through a normalization, which is kept
            sole = tensor in self._views and self.readers[tensor] == 1 and node.inputs.count(tensor) == 1
            if not sole or view is None or view.is_slice or view.spec != node.outputs[0].spec:
                continue
            if not any(view.overlaps(other) for known, other in self._views.items() if known is not tensor):
                del self._views[tensor]
                return view
        return None

    def _join(self, node: Node, whole: View, scheduler: LaysOutSteps) -> None:
        """Computes the inputs of a concatenation again as slices of it, or copies what is there already."""
        self._views[node.outputs[0]] = whole
        for tensor, part in zip(node.inputs, parts_of(node, whole), strict=True):
            here = tensor in self.needed and tensor not in self._views and tensor not in scheduler.sharing.dense
            if here:
                self._recompute(tensor, part, scheduler)
            else:
                scheduler.copy(node, self.view(tensor, scheduler), part)
