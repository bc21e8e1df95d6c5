"""What is recorded of one training step, and what several records tell together."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from pydtconv.graph.schedule.steps import Step
from pydtconv.ops.base import Spec
from pydtconv.profiling.profile import Timing
from pydtconv.profiling.trace import COMMUNICATION, DATA, HOST, READS, STEP, WAIT, WRITES, Trace
from pydtconv.profiling.work import bytes_of, cost_of

Part = tuple[int, str]  # index of the plan's step, part of its pass


@dataclass
class Record:
    """One training step: spans (start, stop) of the parts and of what runs outside of the plan, in nanoseconds.

    number: of the step, from 1.  batch_size, total: samples of this process and of all.  data: loading of its batch.
    communication, waits: of several processes.  transfers: to and from a scratch file, and whether they wrote.
    What is loaded and communicated before the step, since the last one, counts, too.
    """

    number: int = 0
    batch_size: int = 0
    total: int = 0
    start: int = 0
    stop: int = 0
    data: list[tuple[int, int]] = field(default_factory=list)
    steps: dict[int, Step] = field(default_factory=dict)
    parts: dict[Part, tuple[int, int]] = field(default_factory=dict)
    outside: list[tuple[str, int, int]] = field(default_factory=list)
    communication: list[tuple[str, int, int]] = field(default_factory=list)
    waits: list[tuple[str, int, int]] = field(default_factory=list)
    gradients: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    transfers: list[tuple[str, int, int, bool]] = field(default_factory=list)

    def draw(self, trace: Trace) -> None:
        """Adds its spans to a time line."""
        trace.add(f"step {self.number}", self.start, self.stop, STEP, samples=self.batch_size)
        for (index, part), (start, stop) in self.parts.items():
            node = self.steps[index].node
            trace.add(f"{node.name} {part}", start, stop, kind=node.op.name, index=index)
        data = [("next batch", start, stop) for start, stop in self.data]
        spans = {DATA: data, HOST: self.outside, COMMUNICATION: self.communication, WAIT: self.waits}
        for track, found in spans.items():
            for name, start, stop in found:
                trace.add(name, start, stop, track)
        for name, start, stop, wrote in self.transfers:
            trace.add(name, start, stop, WRITES if wrote else READS)

    @property
    def seconds(self) -> float:
        """Without waiting for other processes."""
        return 1e-9 * (self.stop - self.start - waits_within(self, self.start, self.stop))

    @property
    def reductions(self) -> dict[str, float]:
        """Seconds by what was reduced."""
        return {what: 1e-9 * (stop - start) for what, start, stop in self.communication if "bucket" in what}


def outside_of(records: list[Record]) -> dict[str, float]:
    """Median seconds outside of the plan by name; "between" is what the executor needs between parts.

    "wait" is for other processes; the rest is without it.
    """
    names = dict.fromkeys(name for record in records for name, _, _ in record.outside)
    found = {
        name: median(
            [
                sum(b - a - waits_within(record, a, b) for other, a, b in record.outside if other == name)
                for record in records
            ]
        )
        for name in names
    }
    if any(record.waits for record in records):
        found["wait"] = median([sum(waits_within(record, a, b) for _, a, b in record.outside) for record in records])
    gaps = []
    for record in records:
        known = [*record.parts.values(), *((start, stop) for _, start, stop in record.outside)]
        gaps.append(record.stop - record.start - sum(stop - start for start, stop in known))
    return {**found, "between": median(gaps)}


def waits_within(record: Record, start: int, stop: int) -> int:
    """Nanoseconds of waiting within a span."""
    return sum(b - a for _, a, b in record.waits if start <= a and b <= stop)


def reductions_of(ranks: list[list[dict[str, float]]]) -> list[float]:
    """Seconds in which the gradients of each step were reduced, from the reductions of each step of each rank.

    A reduction waits for the last rank to begin it, so the shortest time of all ranks is its own.  Steps of which not
    all ranks have the same reductions do not count.
    """
    steps = [
        step for step in zip(*ranks, strict=False) if step[0] and all(rank.keys() == step[0].keys() for rank in step)
    ]
    return [sum(min(rank[what] for rank in step) for what in step[0]) for step in steps]


def median(nanoseconds: list[int]) -> float:
    return max(statistics.median(nanoseconds), 0) * 1e-9


def timing_of(key: Part, records: list[Record], slots: int) -> Timing:
    """The median of one part; slots: of the optimizer."""
    index, part = key
    last = records[-1]
    step = last.steps[index]
    spans = [record.parts[key] for record in records if key in record.parts]
    parts = [name for other, name in last.parts if other == index]
    cost = cost_of(step, part)
    return Timing(
        index=index,
        node=step.node.name,
        kind=step.node.op.name,
        direction=part,
        seconds=median([stop - start for start, stop in spans]),
        shape=_shape(step),
        algorithm=_algorithm(step, part),
        flops=cost.flops,
        multiplications=cost.multiplications,
        bytes=bytes_of(step, part, slots),
        gradients=tuple(last.gradients.get(index, ())) if part == parts[-1] else (),
    )


def _shape(step: Step) -> str:
    """Input, filters where there are any, and output."""
    specs: list[Spec] = [tensor.spec for tensor in step.node.inputs[:1]]
    specs += [tensor.spec for tensor in step.node.inputs[1:2] if len(tensor.shape) > 1 and tensor.variable is not None]
    texts = ["x".join(map(str, spec.shape)) for spec in specs]
    return f"{' * '.join(texts)} -> {'x'.join(map(str, step.node.outputs[0].shape)) or '1'}"


def _algorithm(step: Step, part: str) -> str:
    """The algorithm of a part of a convolution, "" for others."""
    passes = step.node.op.passes
    roles = ("forward", "backward_data", "backward_weights")
    if part not in roles or not passes:
        return ""
    names = step.node.algorithm_kernel.algorithms_for(*(tensor.spec for tensor in step.node.inputs))
    return names[passes[roles.index(part)]]
