"""What a part of a step of a plan has to do at least: arithmetic, and bytes from and to memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

from pydtconv.graph.memory.storage import View
from pydtconv.graph.schedule.asynchronous import StartStep, WaitStep
from pydtconv.graph.schedule.halos import BlocksStep, RimsBackwardStep, RimsStep
from pydtconv.graph.schedule.steps import AddStep, BackwardStep, CopyStep, MeanTermsStep, PassStep, Step, UpdateStep
from pydtconv.ops.base import Cost

_NOTHING = Cost(0, 0)


@singledispatch
def cost_of(step: Step, part: str) -> Cost:
    """Arithmetic of a part; what only moves bytes has none."""
    return _NOTHING


@cost_of.register
def _(step: PassStep, part: str) -> Cost:
    if part == "recompute":
        return step.node.op.replay_cost(*(tensor.spec for tensor in step.node.inputs)).get("forward", _NOTHING)
    return _costs(step).get(part, _NOTHING)


@cost_of.register(BlocksStep)
@cost_of.register(RimsStep)
def _(step: PassStep, part: str) -> Cost:
    cost = _costs(step).get(part, _NOTHING)
    return Cost(round(cost.flops * step.share), round(cost.multiplications * step.share))


@cost_of.register
def _(step: BackwardStep, part: str) -> Cost:
    cost, part_of = _costs(step).get(part, _NOTHING), step.share
    return Cost(round(cost.flops * part_of), round(cost.multiplications * part_of))


def _costs(step: PassStep) -> dict[str, Cost]:
    return step.node.op.cost(step.of_pass, *(tensor.spec for tensor in step.node.inputs))


def update_bytes(gradient_bytes: int, slots: int) -> int:
    """What an optimizer with so many slots moves: gradients read, variables and slots read and written."""
    return gradient_bytes * (3 + 2 * slots)


@singledispatch
def bytes_of(step: Step, part: str, slots: int = 0) -> int:
    """Bytes that a part reads and writes: each of its arrays once, what it only adds to or changes twice.

    Workspaces are left out, since another algorithm needs others.  slots: of the optimizer, for updates.
    """
    return _total(step.views())


@bytes_of.register(StartStep)
@bytes_of.register(WaitStep)
def _(step: Step, part: str, slots: int = 0) -> int:
    return 0  # others move them


@bytes_of.register
def _(step: UpdateStep, part: str, slots: int = 0) -> int:
    return update_bytes(step.gradient.spec.nbytes, slots)


@bytes_of.register
def _(step: CopyStep, part: str, slots: int = 0) -> int:
    return _total([step.source, step.target])


@bytes_of.register
def _(step: AddStep, part: str, slots: int = 0) -> int:
    return _total([step.source, step.target, step.target])


@bytes_of.register
def _(step: MeanTermsStep, part: str, slots: int = 0) -> int:
    return _total([step.x, step.dx, step.dx])


@bytes_of.register
def _(step: PassStep, part: str, slots: int = 0) -> int:
    x, y = step.x, step.y
    if part in ("forward_bias", "recompute_bias"):
        return _total(y, y, x[2:])
    if part == "forward_moments":
        return _total(y)
    return _total(x, y, step.saved.values())


@bytes_of.register(BlocksStep)
@bytes_of.register(RimsStep)
def _(step: PassStep, part: str, slots: int = 0) -> int:
    return round((_total(step.x[:1]) + _total(step.y)) * step.share) + _total(step.x[1:])


@bytes_of.register
def _(step: BackwardStep, part: str, slots: int = 0) -> int:
    x, y, dy, dx = step.x, step.y, step.dy, step.dx
    if isinstance(step, RimsBackwardStep) and part != "backward_bias":
        return round(_total(dy) * step.share) + _total(x[1:2], dx)
    if part == "backward_bias":
        slope = any(view is not None for view in y)  # dy is multiplied by the activation's slope, in place
        return _total(y, dy, dy if slope else (), dx[2:])
    if part == "backward_data":
        return _total(x[1:2], dy, dx[:1], _added(step, 0))
    if part == "backward_weights":
        return round(_total(x[:1]) * step.share) + _total(dy, dx[1:2], _added(step, 1))
    return _total(x, y, dy, step.saved.values(), dx, *(_added(step, i) for i in range(len(dx))))


def _added(step: BackwardStep, i: int) -> Sequence[View | None]:
    """dx[i] where it is read too."""
    return step.dx[i : i + 1] if i < len(step.accumulate) and step.accumulate[i] else ()


def _total(*groups: Iterable[View | None]) -> int:
    return sum(view.spec.nbytes for group in groups for view in group if view is not None)
