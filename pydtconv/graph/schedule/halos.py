"""Exchanges between processes that go on while convolutions run.

In forward, an exchange of halos and the convolution behind it become

    start of the exchange, the rows of y that are made of this process's own rows of x, wait, the other rows

and in backward, where the exchange gives back the gradients of the halos,

    gradient of x, start of the exchange, gradient of the filters, wait.

The former needs a single image that is cut along its first axis alone, as rows of it are an image again, and so many
pixels that calls for a few rows cost little; the latter is done wherever a convolution stands behind an exchange.  Of
other images the operator gets the halo as a vector (passes/packed_halos.py); then these are

    start of the exchange, all of y as if zeros were around the own part, wait, the outputs that read halos once more

and

    gradient of the halo, start of the exchange, gradients of the own part and of the filters, wait.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydtconv.graph.ir.graph import Node
from pydtconv.graph.memory.storage import Storage, View, fresh
from pydtconv.graph.schedule.asynchronous import StartStep, WaitStep
from pydtconv.graph.schedule.steps import BackwardStep, Binder, ForwardStep, PassStep, Step, Steps
from pydtconv.kernels.base import AlgorithmKernel, Call, Pass, RowBlock, WindowKernel
from pydtconv.ops.base import Spec
from pydtconv.ops.exchange import Exchange
from pydtconv.ops.halo import rims
from pydtconv.ops.layout import window_padding, window_reads


@dataclass(eq=False)
class ExchangeStart(StartStep):
    """Begins what the step `whole` does at once, and writes what this process holds itself.

    arriving: views of what comes from others.
    """

    whole: PassStep
    arriving: Sequence[View] = ()

    def reads(self) -> list[View]:
        return self.whole.reads()

    def writes(self) -> list[View]:
        return [*self.arriving, *([] if self.whole.workspace is None else [self.whole.workspace])]

    def views(self) -> list[View]:
        return self.whole.views()

    def bind_both(self, binder: Binder) -> tuple[Call, Call]:
        workspace = None if self.whole.workspace is None else binder.array(self.whole.workspace)
        arguments = Pass(**self.whole._arguments(binder), workspace=workspace)
        kernel: Any = self.node.kernel
        if isinstance(self.whole, BackwardStep):
            start, wait = kernel.backward_halves(arguments)
        else:
            start, wait = kernel.forward_halves(arguments)
        return start, wait


@dataclass(eq=False)
class ExchangeWait(WaitStep):
    """Waits for an exchange, and puts what has come where it belongs."""

    def views(self) -> list[View]:
        assert isinstance(self.start, ExchangeStart)
        return self.start.whole.views()


@dataclass(eq=False)
class BlocksStep(ForwardStep):
    """Some rows of y.  every: all blocks of the pass, where these are the last of them."""

    blocks: Sequence[RowBlock] = ()
    every: Sequence[RowBlock] = ()

    @property
    def share(self) -> float:
        (y, *_) = self.node.outputs
        rows = sum(block.out[1] - block.out[0] for block in self.blocks)
        return rows / ((y.shape[0] or 1) * (y.shape[1] or 1))

    def problems(self) -> list[Any]:
        """The convolutions of its blocks."""
        specs = [tensor.spec for tensor in self.node.inputs]
        return [self.node.algorithm_kernel.block_problem(block, *specs) for block in self.blocks]

    def reads(self) -> list[View]:
        x, *rest = self.x
        assert x is not None
        return [*(_rows(x, block.image, block.read) for block in self.blocks), *(v for v in rest if v is not None)]

    def views(self) -> list[View]:
        return [*self.reads(), *self.writes()]

    def _pass(self) -> Callable[[Pass], Call]:
        return functools.partial(self.node.window_kernel.forward_blocks, blocks=self.blocks, every=self.every)


@dataclass(eq=False)
class InnerStep(ForwardStep):
    """All of y, from this process's own part."""

    part = "inner"

    def _pass(self) -> Callable[[Pass], Call]:
        return self.node.window_kernel.rims.forward_inner


@dataclass(eq=False)
class RimsStep(ForwardStep):
    """The outputs that read halos."""

    part = "rims"

    @property
    def share(self) -> float:
        return _share_of_rims(self.node)

    def _pass(self) -> Callable[[Pass], Call]:
        return self.node.window_kernel.rims.forward_rims


@dataclass(eq=False)
class InnerBackwardStep(BackwardStep):
    """The gradients of this process's own part and of the filters."""

    part = "inner"

    def _pass(self) -> Callable[[Pass], Call]:
        return self.node.window_kernel.rims.backward_inner


@dataclass(eq=False)
class RimsBackwardStep(BackwardStep):
    """The gradients of the halo, and of a bias; dy is then that of the bare convolution."""

    part = "rims"

    @property
    def share(self) -> float:
        return _share_of_rims(self.node)

    def _pass(self) -> Callable[[Pass], Call]:
        return self.node.window_kernel.rims.backward_rims


@dataclass(eq=False)
class WeightsStep(BackwardStep):
    """The gradient of the filters, after a step with that of x, which has left dy as this one reads it."""

    def _pass(self) -> Callable[[Pass], Call]:
        return self.node.algorithm_kernel.backward_weights


def overlap(steps: Steps, first: int = 0) -> None:
    """Lets exchanges from step `first` on go on beside convolutions, where that can be."""
    found: list[Step] = list(steps[:first])
    index = first
    while index < len(steps):
        pair = steps[index : index + 2]
        several = _forward(*pair) or _backward(*pair) if len(pair) == 2 else None
        found += several or pair[:1]
        index += 2 if several else 1
    steps[:] = found


def _forward(exchange: Step, convolution: Step) -> list[Step] | None:
    """What stands for two steps of forward; None where nothing goes on meanwhile."""
    if type(exchange) is not ForwardStep or type(convolution) is not ForwardStep:
        return None
    op, node, x = exchange.node.op, convolution.node, exchange.y[0]
    if not isinstance(op, Exchange) or x is None:
        return None
    if convolution.x[0] is x and op.held[op.index] == op.need[op.index]:  # others read what is sent
        start = ExchangeStart(exchange.node, exchange)
        return [start, convolution, ExchangeWait(exchange.node, start)]
    if op.packed and convolution.x[-1] is x:
        return _forward_with_rims(exchange, convolution)
    kernel = node.kernel
    if convolution.x[0] is not x or convolution.prologue is not None:
        return None
    if not isinstance(kernel, WindowKernel) or not kernel.works_in_blocks:
        return None
    if convolution.saved and node.op.passes:
        return None
    own = _own_rows(op)
    blocks = None if own is None else _blocks(node, own)
    if own is None or blocks is None:
        return None
    inner, outer = blocks
    every = [*inner, *outer]
    specs = [tensor.spec for tensor in node.inputs]
    shared = kernel.block_saves(len(every), *specs)
    saved = {} if shared is None else {"blocks": fresh(f"{node.name}.blocks", "workspace", shared)}
    saved |= convolution.saved
    extent = x.spec.shape[1] or 0
    arriving = [
        _rows(x, image, rows)
        for image in range(x.spec.shape[0] or 1)
        for rows in ((0, own[0]), (own[1], extent))
        if rows[0] < rows[1]
    ]
    start = ExchangeStart(exchange.node, exchange, arriving)
    steps = [
        BlocksStep(node, x=convolution.x, y=convolution.y, saved=saved, blocks=some, every=last)
        for some, last in ((inner, ()), (outer, every))
    ]
    for step in steps:
        _give_workspace(step, max(kernel.block_workspace(block, *specs) for block in step.blocks))
    return [start, steps[0], ExchangeWait(exchange.node, start), steps[1]]


def _forward_with_rims(exchange: ForwardStep, whole: ForwardStep) -> list[Step]:
    """The steps of an operator that gets its halo as a vector."""
    node, x = whole.node, exchange.y[0]
    assert x is not None
    specs = [tensor.spec for tensor in node.inputs]
    saves = node.window_kernel.rims.saves(*specs)
    shared = {key: fresh(f"{node.name}.{key}", "workspace", spec) for key, spec in saves.items()}
    read = (*whole.x[:-1], None)
    inner = InnerStep(node, x=read, y=whole.y[:1], saved=whole.saved | shared)
    outer = RimsStep(node, x=whole.x, y=whole.y, saved=_lasting(whole.saved) | shared)
    for step in (inner, outer):
        _give_workspace(step, node.kernel.workspace("forward", *specs))
    start = ExchangeStart(exchange.node, exchange, [x])
    return [start, inner, ExchangeWait(exchange.node, start), outer]


def _backward_with_rims(whole: BackwardStep, exchange: BackwardStep) -> list[Step]:
    """The steps of the gradients of an operator that gets its halo as a vector."""
    node, count = whole.node, 2 if whole.node.op.passes else 1
    nothing: tuple[View | None, ...] = (None,) * count
    outer = RimsBackwardStep(
        node,
        x=(None, *whole.x[1:]),
        y=whole.y,
        dy=whole.dy,
        dx=(*nothing, *whole.dx[count:]),
        saved=_lasting(whole.saved),
    )
    inner = InnerBackwardStep(
        node,
        x=whole.x,
        dy=whole.dy,
        dx=(*whole.dx[:count], *(None for _ in whole.dx[count:])),
        accumulate=whole.accumulate,
        saved=whole.saved,
        ready=whole.ready,
    )
    nbytes = node.kernel.workspace("backward", *(tensor.spec for tensor in node.inputs))
    for step in (outer, inner):
        _give_workspace(step, nbytes)
    start = ExchangeStart(exchange.node, exchange)
    return [outer, start, inner, ExchangeWait(exchange.node, start, ready=exchange.ready)]


def _backward(convolution: Step, exchange: Step) -> list[Step] | None:
    """What stands for two steps of backward; None where nothing goes on meanwhile."""
    if type(convolution) is not BackwardStep or type(exchange) is not BackwardStep:
        return None
    kernel = convolution.node.kernel
    if isinstance(kernel, WindowKernel) and kernel.rims is not None:
        together = exchange.dy[:1] == convolution.dx[-1:] and convolution.dx[-1] is not None
        return _backward_with_rims(convolution, exchange) if together else None
    node, dx = convolution.node, convolution.dx
    if not isinstance(exchange.node.op, Exchange) or exchange.dx[0] is None:
        return None
    if not isinstance(kernel, AlgorithmKernel) or not kernel.splits_backward:
        return None
    if exchange.dy[0] is not dx[0] or dx[0] is None or dx[1] is None or convolution.rows is not None:
        return None
    written = (dx[0], exchange.dx[0])
    if any(view.overlaps(read) for view in written for read in (*convolution.dy, convolution.x[0]) if read is not None):
        return None  # dy is a residual's gradient, too, to which the exchange adds
    convolution.saved = _lasting(convolution.saved)
    weights = WeightsStep(
        node,
        x=(convolution.x[0], *(None for _ in convolution.x[1:])),
        dy=convolution.dy,
        dx=(None, dx[1], *(None for _ in dx[2:])),
        accumulate=convolution.accumulate,
        saved=dict(convolution.saved),
        prologue=convolution.prologue,
        ready=convolution.ready,
    )
    nbytes = node.kernel.workspace("backward", *(tensor.spec for tensor in node.inputs))
    _give_workspace(weights, nbytes)

    convolution.x = (None, *convolution.x[1:])
    convolution.dx = (dx[0], None, *dx[2:])
    convolution.prologue, convolution.ready = None, ()
    start = ExchangeStart(exchange.node, exchange, [exchange.dx[0]])
    return [convolution, start, weights, ExchangeWait(exchange.node, start, ready=exchange.ready)]


def _share_of_rims(node: Node) -> float:
    """The portion of y that reads halos."""
    y, filters = node.outputs[0].spec, [tensor.spec for tensor in node.inputs[1:2] if node.op.passes]
    outputs: Any = y.shape[1:-1]
    found = rims(node.op.halo, outputs, *filters) or ()  # type: ignore[attr-defined]
    pixels = sum(math.prod(stop - start for start, stop in rim.out) for rim in found)
    return pixels / math.prod(outputs)


def _lasting(saved: dict[str, View]) -> dict[str, View]:
    """Without what one part of a step leaves for another one."""
    return {
        key: view
        for key, view in saved.items()
        if not (isinstance(view.buffer, Storage) and view.buffer.kind == "workspace")
    }


def _give_workspace(step: PassStep, nbytes: int) -> None:
    if nbytes and not step.node.kernel.persistent:
        step.transient_bytes = nbytes
    elif nbytes:
        step.workspace = fresh(f"{step.node.name}.{step.kind}", "workspace", Spec((nbytes,), "uint8"))


def _own_rows(op: Exchange) -> tuple[int, int] | None:
    """The rows of what is read that this process holds itself; None where other axes change, or nothing does."""
    held, need = op.held[op.index], op.need[op.index]
    changed = [axis for axis, old, new in zip(op.axes, held, need, strict=True) if old != new]
    if changed != [1]:
        return None
    place = op.axes.index(1)
    (a, b), (start, stop) = held[place], need[place]
    first, last = max(a, start) - start, min(b, stop) - start
    return (first, last) if first < last else None


def _blocks(node: Any, own: tuple[int, int]) -> tuple[list[RowBlock], list[RowBlock]] | None:
    """Blocks of y that read own rows alone, and the others; None where one is empty, or the first are too small."""
    x, y = node.inputs[0].spec, node.outputs[0].spec
    walk = node.op.window(1, *(tensor.spec for tensor in node.inputs))
    extent, rows = x.shape[1], y.shape[1]
    if walk is None or walk.transposed:
        return None
    reads = [window_reads(walk, (row, row + 1), extent) for row in range(rows)]
    inside = [row for row, (start, stop) in enumerate(reads) if own[0] <= start < stop <= own[1]]
    if not inside or any(start >= stop for start, stop in reads):
        return None
    bounds = (0, inside[0], inside[-1] + 1, rows)
    least = node.outputs[0].graph.thresholds.halo_pixels
    if (bounds[2] - bounds[1]) * math.prod(y.shape[2:-1]) < least or len(inside) == rows:
        return None
    found: tuple[list[RowBlock], list[RowBlock]] = ([], [])
    number = 0
    for inner in (True, False):
        parts = ((bounds[1], bounds[2]),) if inner else ((0, bounds[1]), (bounds[2], rows))
        for out in (part for part in parts if part[0] < part[1]):
            read = window_reads(walk, out, extent)
            before, after = window_padding(walk, out, read)
            if min(before, after) < 0:
                return None
            for image in range(x.shape[0]):
                found[0 if inner else 1].append(RowBlock(number, image, out, read, (before, after)))
                number += 1
    return found


def _rows(view: View, image: int, rows: tuple[int, int]) -> View:
    """The view of some rows of an image."""
    shape = view.spec.shape
    start = (image, rows[0], *([0] * (len(shape) - 2)))
    return view.part(start, Spec((1, rows[1] - rows[0], *shape[2:]), view.spec.dtype))
