"""Seconds that each step of a plan takes: as measured in earlier trainings on this machine, else by the cost model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydtconv import config, devices
from pydtconv.conv import calibrated, timings
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.problem import ConvProblem
from pydtconv.graph.ir.graph import joins_channels
from pydtconv.graph.memory.storage import View
from pydtconv.graph.schedule.asynchronous import StartStep, WaitStep
from pydtconv.graph.schedule.halos import BlocksStep
from pydtconv.graph.schedule.steps import BackwardStep, PassStep, Step, UpdateStep
from pydtconv.ops.base import Op, Spec

#: seconds in which a device starts a kernel
START = 5e-6

#: what steps take beside one pass over what they read and write, where it is more: several passes, strides,
#: exponentials; of two threads of an AVX-512 CPU (`python -m benchmarks.predicted`)
_SWEEPS = {
    ("add", "backward"): 1.5,
    ("averagepool", "backward"): 2.8,
    ("averagepool", "forward"): 2.8,
    ("batchnorm", "backward"): 2.1,
    ("batchnorm", "forward"): 1.7,
    ("dropout", "backward"): 3.0,
    ("dropout", "forward"): 3.0,
    ("globalaveragepool", "backward"): 2.5,
    ("globalaveragepool", "forward"): 2.0,
    ("layernorm", "backward"): 2.1,
    ("layernorm", "forward"): 1.7,
    ("maxpool", "backward"): 2.7,
    ("maxpool", "forward"): 1.9,
    ("moments", "forward"): 3.0,
    ("softmaxcrossentropy", "backward"): 15.0,
    ("softmaxcrossentropy", "forward"): 45.0,
}


def signature(step: Step) -> str:
    """What a measured time belongs to: operator, shapes, algorithms and what is computed."""
    node = step.node
    parts = [
        step.kind,
        step.part if isinstance(step, PassStep) else "",
        repr(node.op),
        " ".join(_shape(tensor.spec) for tensor in node.inputs),
    ]
    if isinstance(step, BackwardStep):
        parts.append("".join("-" if view is None else "d" for view in step.dx))
        parts.append("" if step.rows is None else f"rows {step.rows.start}:{step.rows.stop}")
    elif isinstance(step, BlocksStep):
        parts.append(f"share {step.share:g}")
    elif not isinstance(step, PassStep):
        parts.append(" ".join(_shape(view.spec) for view in step.views()))
    return " | ".join(part for part in parts if part)


def _shape(spec: Spec) -> str:
    return f"{spec.dtype}{list(spec.shape)}"


class StepTimes:
    """Seconds of steps with so many threads.  measured: by signature, where they have been.

    What has not been measured is estimated, and taken to be off by as much as the estimates of what has: else a plan
    would be taken for the faster one because less is known of it.
    """

    def __init__(self, threads: int, measured: Mapping[str, float]) -> None:
        self.threads = threads
        self.measured = measured
        self._found: dict[Any, tuple[float, float | None]] = {}  # estimated, measured
        self._ops: dict[int, Op] = {}  # kept, so that no other one gets the same id
        self._paces: dict[str, list[float]] = {}

    def of(self, steps: Sequence[Step]) -> list[float]:
        """Of each step by itself; 0 for those that begin transfers or wait for them."""
        found = [None if isinstance(step, (StartStep, WaitStep)) else self._of(step) for step in steps]
        paces = {of: self._pace(of) for of in {_kind(step) for step in steps}}
        return [
            0.0 if each is None else each[0] * paces[_kind(step)] if each[1] is None else each[1]
            for step, each in zip(steps, found, strict=True)
        ]

    def _pace(self, kind: str) -> float:
        """Measured over estimated seconds of steps of this kind, of all kinds where none of it has been measured."""
        sums = self._paces.get(kind)
        return sums[0] / sums[1] if sums else self.pace

    @property
    def pace(self) -> float:
        """Measured over estimated seconds of all that has been measured."""
        sums = [sum(values) for values in zip(*self._paces.values(), strict=True)]
        return sums[0] / sums[1] if sums else 1.0

    def _of(self, step: Step) -> tuple[float, float | None]:
        """Looked up by the node and its present operator, which takes less time than to write its signature."""
        own: Any = step.part if isinstance(step, PassStep) else None
        self._ops[id(step.node.op)] = step.node.op
        if isinstance(step, BackwardStep):
            own = step.part, tuple(view is None for view in step.dx), step.rows and (step.rows.start, step.rows.stop)
        elif isinstance(step, BlocksStep):
            own = step.share
        elif not isinstance(step, PassStep):
            own = sum(view.spec.nbytes for view in step.views())
        key = (step.kind, step.node, id(step.node.op), own)
        if key not in self._found:
            known = self.measured.get(signature(step)) if self.measured else None
            guess = estimate(step, self.threads)
            self._found[key] = guess, known
            if known is not None:
                sums = self._paces.setdefault(_kind(step), [0.0, 0.0])
                sums[0] += known
                sums[1] += guess
        return self._found[key]


def _kind(step: Step) -> str:
    return f"{step.node.op.name} {step.kind}"


def estimate(step: Step, threads: int) -> float:
    """By the cost model: convolutions by their algorithms, others by the bytes that they move and their operations."""
    if step.node.device != "cpu":
        return _on_device(step)
    if isinstance(step, PassStep) and step.part == "rims":
        return _rims(step, threads)
    if isinstance(step, PassStep) and step.node.op.passes:
        return _convolution(step, threads) + calibrated.machine(threads=threads).start
    if not isinstance(step, PassStep):
        swept = 5 * step.gradient.spec.nbytes if isinstance(step, UpdateStep) else _bytes(step.views())
        machine = calibrated.machine(threads=threads)
        return machine.start + swept / machine.bytes
    flops = 0.0
    if not joins_channels(step.node):
        specs = [tensor.spec for tensor in step.node.inputs]
        unwanted = _unwanted(step) if isinstance(step, BackwardStep) else ()
        costs = step.node.op.cost(step.of_pass, *specs)
        flops = sum(cost.flops for part, cost in costs.items() if part not in unwanted)
    moved = float(_bytes(step.views()))
    if isinstance(step, BackwardStep) and step.rows is not None:
        part = step.share
        flops *= part
        read = sum(view.spec.nbytes for view in step.x[:1] if view is not None)
        moved = part * read + _bytes([view for view in (*step.dy, *step.dx) if view is not None])
    moved *= _SWEEPS.get((step.node.op.name, step.of_pass), 1.0)
    machine = calibrated.machine(str(step.node.outputs[0].spec.dtype), threads)
    return machine.start + moved / machine.bytes + flops / machine.flops


def _on_device(step: Step) -> float:
    """By what the device does in a second; convolutions as they were measured on it, where they were."""
    from pydtconv.devices.tuning import DeviceBench

    device: Any = devices.get(step.node.device)
    rates, flops, moved = device.rates(), 0.0, float(_bytes(step.views()))
    if isinstance(step, PassStep) and step.node.op.passes:
        op: Any = step.node.op
        specs = [tensor.spec for tensor in step.node.inputs]
        y, dx, dw = op.passes
        unwanted = _unwanted(step) if isinstance(step, BackwardStep) else ()
        wanted = [name for name in ((dx, dw) if isinstance(step, BackwardStep) else (y,)) if name not in unwanted]
        names, bench = step.node.algorithm_kernel.algorithms_for(*specs), DeviceBench(device)
        p = op.problem(*specs[:2])
        known = (timings.measured(p, each, device.name).get(names[each]) for each in wanted)
        found = sum(one or bench.seconds(p, each, names[each]) for one, each in zip(known, wanted, strict=True))
        return START + float(found)
    if isinstance(step, UpdateStep):
        moved = 5.0 * step.gradient.spec.nbytes
    elif isinstance(step, PassStep) and not joins_channels(step.node):
        costs = step.node.op.cost(step.of_pass, *(tensor.spec for tensor in step.node.inputs))
        flops = sum(cost.flops for cost in costs.values())
    return START + moved / float(rates.nbytes) + flops / float(rates.flops)


def estimate_of_bytes(nbytes: int, threads: int) -> float:
    """Seconds of a step that reads and writes so many bytes."""
    machine = calibrated.machine(threads=threads)
    return (machine.start if nbytes else 0.0) + nbytes / machine.bytes


def _unwanted(step: BackwardStep) -> list[str]:
    """Parts of a pass whose result nobody wants."""
    parts = ("backward_data", "backward_weights")
    return [part for part, view in zip(parts, step.dx, strict=False) if view is None]


def _bytes(views: Sequence[View]) -> int:
    return sum(view.spec.nbytes for view in views)


def _rims(step: PassStep, threads: int) -> float:
    """Of the outputs that read halos: convolutions by their algorithms, and what is copied."""
    op = step.node.op
    machine = calibrated.machine(threads=threads)
    total = machine.start + 3 * step.share * step.node.outputs[0].spec.nbytes / machine.bytes
    for p, names in step.node.window_kernel.rims.problems(*(tensor.spec for tensor in step.node.inputs)):
        direction = op.passes[1 if isinstance(step, BackwardStep) else 0]
        total += _seconds(p, direction, names[direction], threads)
    return total


def _convolution(step: PassStep, threads: int) -> float:
    op: Any = step.node.op
    specs = [tensor.spec for tensor in step.node.inputs]
    p = op.problem(*specs[:2])
    y, dx, dw = op.passes
    if isinstance(step, BlocksStep):
        return _blocks(step, y, threads)
    wanted = [y]
    if isinstance(step, BackwardStep):
        wanted = [name for name, view in zip((dx, dw), step.dx[:2], strict=True) if view is not None]
    names = step.node.algorithm_kernel.algorithms_for(*specs)
    return sum(_seconds(p, direction, names[direction], threads) for direction in wanted)


def _blocks(step: BlocksStep, direction: str, threads: int) -> float:
    """Of some rows of y: each call packs the filters again, which counts where the rows are few."""
    name = step.node.algorithm_kernel.algorithms_for(*(tensor.spec for tensor in step.node.inputs))[direction]
    return sum(_seconds(problem, direction, name, threads) for problem in step.problems())


def _seconds(p: ConvProblem, direction: str, name: str, threads: int) -> float:
    """Of a pass: as tuning has measured it, else by the cost model."""
    known = timings.measured(p, direction).get(name)
    return known or TABLE[name].seconds(p, direction) * config.num_threads() / threads
