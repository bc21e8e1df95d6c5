"""Runs a loop: the passes of its body, bound once, for each step forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.dtypes import from_bits, to_bits
from pydtconv.graph.runtime.body_plan import BodyPlan, Places
from pydtconv.kernels.base import Call, Pass
from pydtconv.ops.body_loop import Scan


def _cut(workspace: np.ndarray | None, *sizes: int) -> list[np.ndarray]:
    """Pieces of a workspace."""
    pieces, at = [], 0
    for nbytes in sizes:
        pieces.append(np.empty(0, np.uint8) if workspace is None else workspace[at : at + nbytes])
        at += nbytes
    return pieces


class _Loop:
    """What both passes of a loop share."""

    def __init__(self, op: Scan, p: Pass) -> None:
        self.op, self.p = op, p
        self.plan: BodyPlan = op.plan
        self.xs: list[Any] = [None if x is None else np.moveaxis(x, op.axis, 0) for x in p.x[: op.sequences]]
        order = range(op.steps)
        self.order = list(reversed(order)) if op.backwards else list(order)
        self.segment = op.segment

    def places(self, memory: Sequence[tuple[Any, np.ndarray]], more: Sequence[tuple[Any, np.ndarray]] = ()) -> Any:
        """Where a pass of the body finds its arrays; more: of buffers that lie outside of the workspace."""
        shared = zip(self.plan.shared, self.p.x[self.op.given :], strict=True)
        outside = {view.buffer: array for view, array in shared if array is not None}
        return Places(self.plan, memory, outside | dict(more), self.p.stream)

    def active(self) -> Sequence[bool]:
        """For each step of the sequences, whether the body runs."""
        if not self.op.masked:
            return [True] * self.op.steps
        mask = self.xs[0]
        assert mask is not None
        return mask.reshape(self.op.steps, -1).any(axis=1).tolist()

    def at(self, number: int, t: int) -> int | None:
        """Where the results of a step go; None where nobody wants them."""
        if self.op.stacked:
            return t if self.op.aligned else number
        return 0 if number == self.op.steps - 1 else None

    def along_steps(self, arrays: Sequence[Any]) -> list[Any]:
        """Results, or their gradients, with the steps first."""
        if self.op.stacked:
            return [None if y is None else np.moveaxis(y, self.op.axis, 0) for y in arrays]
        return [None if y is None else y[None] for y in arrays]


class Forward(_Loop):
    """The body's forward.  kept: memory of what a step leaves for backward."""

    def __init__(self, op: Scan, p: Pass, kept: np.ndarray, memory: np.ndarray) -> None:
        super().__init__(op, p)
        plan = self.plan
        self.kept = kept
        places = self.places([(plan.kept, kept), (plan.forward_memory, memory)])
        self.run = places.state
        array = places.array
        self.x = list(zip(map(array, plan.xs), self.xs, strict=True))
        self.states = [array(view) for view in plan.states]
        self.results = [array(view) for view in plan.results]
        self.stash = [(array(stash), array(plan.next_states[i])) for i, stash in plan.stashed.items()]
        self.after = [
            (state, array(plan.stashed.get(i, view)))
            for i, (state, view) in enumerate(zip(self.states, plan.next_states, strict=True))
            if not view.same_place(plan.states[i])
        ]
        self.calls = [step.bind(places) for step in plan.forward]

    def begin(self) -> None:
        """Takes over the state of random operators."""
        vars(self.run).update(vars(self.p.run))
        self.run.part_done = None

    def step(self, t: int) -> None:
        """Runs the body for a step of the sequences."""
        for buffer, x in self.x:
            buffer[...] = x[t]
        self.run.step = self.p.run.step * self.op.steps + t
        for call in self.calls:
            call()

    def advance(self) -> None:
        """The states after the step are those before the next one."""
        for stash, source in self.stash:
            stash[...] = source
        for state, source in self.after:
            state[...] = source

    def replay(self, marks: np.ndarray, number: int, active: Sequence[bool], ring: np.ndarray) -> None:
        """Runs the steps of a segment, the last one of which has this number, and leaves in `ring` what each keeps."""
        first = number // self.segment * self.segment
        self.begin()
        _unpack(marks[number // self.segment], self.states)
        for i in range(first, number + 1):
            if active[self.order[i]]:
                self.step(self.order[i])
                ring[i - first] = self.kept
                self.advance()


def _packed(mark: np.ndarray, states: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each state with where it lies in the memory of a mark."""
    found, at = [], 0
    for state in states:
        found.append((state, np.ndarray(state.shape, state.dtype, mark, at)))
        at += -(-state.nbytes // 64) * 64
    return found


def _unpack(mark: np.ndarray, states: Sequence[np.ndarray]) -> None:
    for state, kept in _packed(mark, states):
        state[...] = kept


def bind_forward(op: Scan, p: Pass) -> Call:
    """Binds the forward pass of a loop."""
    plan: BodyPlan = op.plan
    loop = Forward(op, p, *_cut(p.workspace, plan.kept_bytes, plan.forward_memory.nbytes))
    ys = loop.along_steps(p.y[op.states :])
    store, marks = p.saved.get("kept"), p.saved.get("states")
    given: Sequence[Any] = [*p.x[op.sequences : op.given], *[None] * op.zeros]

    def results(place: int, active: bool) -> None:
        for i, (y, result) in enumerate(zip(ys, loop.results, strict=True)):
            held = -1 if active else op.held[i]
            if active:
                y[place] = result
            elif held < 0:
                y[place] = 0
            else:
                y[place] = loop.states[held]

    def run() -> None:
        loop.begin()
        active = loop.active()
        for state, first in zip(loop.states, given, strict=True):
            state[...] = 0 if first is None else first
        for number, t in enumerate(loop.order):
            if marks is not None and number % loop.segment == 0:
                for state, mark in _packed(marks[number // loop.segment], loop.states):
                    mark[...] = state
            if active[t]:
                loop.step(t)
            place = loop.at(number, t)
            if place is not None:
                results(place, active[t])
            if active[t]:
                if store is not None:
                    store[number] = loop.kept
                loop.advance()
        for last, state in zip(p.y[: op.states], loop.states, strict=False):
            last[...] = state
        p.run.draws = loop.run.draws

    return run


class Backward(_Loop):
    """The body's backward.  kept: memory of what a step has left."""

    def __init__(self, op: Scan, p: Pass, kept: np.ndarray, memory: np.ndarray) -> None:
        super().__init__(op, p)
        plan, first = self.plan, op.sequences
        weights = [i for i in plan.gradients if i >= first + len(plan.states)]
        self.weights = {i: p.dx[i - op.zeros] for i in weights if p.dx[i - op.zeros] is not None}
        direct = [(buffer, self.weights.get(i, np.empty(buffer.nbytes, np.uint8))) for buffer, i in plan.direct.items()]
        places = self.places([(plan.kept, kept), (plan.backward_memory, memory)], direct)
        self.run, array = places.state, places.array
        read = zip(plan.xs, self.xs, range(first), strict=True)
        self.x = [(array(view), x) for view, x, i in read if i in plan.read_by_backward]
        self.seeds = {number: array(view) for number, view in plan.seeds.items() if self._is_read(view)}
        gradients = {i: array(view) for i, view in plan.gradients.items() if i not in self.weights or self._is_apart(i)}
        self.dx = [
            (gradients.get(i), np.moveaxis(dx, op.axis, 0)) for i, dx in enumerate(p.dx[:first]) if dx is not None
        ]
        self.dstates = [(self.seeds.get(i), gradients.get(first + i)) for i in range(len(plan.states))]
        self.added = [(dw, gradients[i]) for i, dw in self.weights.items() if self._is_apart(i)]
        self.calls = [step.bind(places) for step in plan.backward]

    def _is_read(self, view: Any) -> bool:
        return any(view.buffer is each.buffer for step in self.plan.backward for each in step.reads())

    def _is_apart(self, i: int) -> bool:
        return self.plan.gradients[i].buffer not in self.plan.direct

    def begin(self) -> None:
        """Takes over the state of random operators, and sets to 0 what is added to."""
        vars(self.run).update(vars(self.p.run))
        self.run.part_done = None
        p, op = self.p, self.op
        for j in range(op.given, len(p.dx)):
            if p.dx[j] is not None and not p.adds(j):
                p.dx[j].fill(0)
        for i in range(len(self.plan.states)):
            seed, dy = self.seeds.get(i), p.dy[i] if i < op.states else None
            if seed is not None:
                seed[...] = 0 if dy is None else dy

    def step(self, number: int, t: int, dys: Sequence[Any]) -> None:
        """Runs the body's backward for a step; dys: gradients of its results, None for none."""
        for buffer, x in self.x:
            buffer[...] = x[t]
        for i, dy in enumerate(dys):
            seed = self.seeds.get(len(self.plan.states) + i)
            if seed is not None:
                seed[...] = 0 if dy is None else dy
        self.run.step = self.p.run.step * self.op.steps + t
        for call in self.calls:
            call()
        for gradient, dx in self.dx:
            dx[t] = 0 if gradient is None else gradient
        for dw, gradient in self.added:
            _add(dw, gradient)
        for seed, gradient in self.dstates:
            if seed is not None:
                seed[...] = 0 if gradient is None else gradient

    def skip(self, t: int, dys: Sequence[Any]) -> None:
        """A step in which the body has not run."""
        for dy, held in zip(dys, self.op.held, strict=True):
            seed = self.seeds.get(held)
            if dy is not None and seed is not None:
                _add(seed, dy)
        for _, dx in self.dx:
            dx[t] = 0


def _add(total: np.ndarray, more: np.ndarray) -> None:
    if total.dtype == np.uint16:  # bits of bfloat16
        total[...] = to_bits(from_bits(total) + from_bits(more))
    else:
        np.add(total, more, total)


def bind_backward(op: Scan, p: Pass) -> Call:
    """Binds the backward pass of a loop."""
    plan: BodyPlan = op.plan
    sizes = [plan.kept_bytes, plan.backward_memory.nbytes]
    if op.again:
        sizes += [plan.forward_memory.nbytes, op.segment * plan.kept_bytes]
    kept, memory, *more = _cut(p.workspace, *sizes)
    loop = Backward(op, p, kept, memory)
    dys = loop.along_steps(p.dy[op.states :])
    store: Any = p.saved.get("kept")
    replayed = Forward(op, p, kept, more[0]) if op.again else None
    if replayed is not None:
        store = more[1].reshape(op.segment, plan.kept_bytes)

    def run() -> None:
        loop.begin()
        active = loop.active()
        for number in range(op.steps - 1, -1, -1):
            t = loop.order[number]
            place = loop.at(number, t)
            parts = [None if dy is None or place is None else dy[place] for dy in dys]
            if replayed is not None and (number == op.steps - 1 or (number + 1) % op.segment == 0):
                replayed.replay(p.saved["states"], number, active, store)
            if active[t]:
                kept[...] = store[number % op.segment if op.again else number]
                loop.step(number, t, parts)
            else:
                loop.skip(t, parts)
        for i, dx in enumerate(p.dx[op.sequences : op.given]):
            if dx is not None:
                seed = loop.seeds.get(i)
                dx[...] = 0 if seed is None else seed

    return run
