"""Steps of images that are cut over a mesh: what a rank computes, exchanges and holds, from the step of one rank.

The plan of a rank is made as it would be there; nothing runs.  Its steps take what they were measured to take in the
plan of one rank: where they differ, their times by the cost model are off by as much as those of their kind.  What its
exchanges send, at the network's rates, and copy, says how long they take, of which what runs meanwhile hides some;
normalizations sum their statistics; gradients are reduced as in `scaling`.  The rank that takes longest counts, of the
first, the middle and the last ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydtconv import replica
from pydtconv.graph import Plan
from pydtconv.graph.schedule.asynchronous import StartStep, WaitStep
from pydtconv.graph.schedule.halos import ExchangeStart
from pydtconv.graph.schedule.step_times import StepTimes, estimate_of_bytes, signature
from pydtconv.graph.schedule.steps import BackwardStep, PassStep, Step
from pydtconv.graph.spatial.partition import Partition
from pydtconv.ops.exchange import Exchange
from pydtconv.ops.normalization import BatchNorm
from pydtconv.profiling import Profile
from pydtconv.simulation.collectives import allreduce, normalization
from pydtconv.support.network import Network

#: seconds that the processes of a step take in Python to agree on its samples, sum metrics and begin its reduction
SHARING = 4e-4
#: messages of all processes in that
_SHARED = 3


@dataclass(frozen=True)
class MeshPrediction:
    """A step on a mesh, in seconds.

    compute: of the rank with most to do.  exchange: its copies, and its waiting for ranks that share its images or its
    statistics, in forward and backward.  reduction: of all gradients, of which backward hides some.  nbytes: the
    largest predicted peak of a rank.
    """

    mesh: str
    ranks: int
    compute: float
    exchange: float
    reduction: float
    nbytes: int

    @property
    def seconds(self) -> float:
        """The step, with the part of the reduction that a backward pass of two thirds of the step cannot hide."""
        return self.compute + self.exchange + max(self.reduction - self.compute * 2 / 3, 0.0)


class OneRank:
    """The step of one rank with all images: how long the steps of other plans take there.

    seconds: of the whole.  measured: of the plan's steps, by their index; without them all are by the cost model.
    outside: of the whole, what is no step of the plan (the optimizer, metrics).  inputs: of that, copying images.
    """

    def __init__(
        self, plan: Plan, seconds: float, measured: Mapping[int, float] | None = None, inputs: float = 0.0
    ) -> None:
        self.plan = plan
        self.inputs = inputs
        measured = measured or {}
        if any(index >= len(plan.steps) for index in measured):
            raise ValueError(f"profile: expected one of a plan of {len(plan.steps)} steps, got {max(measured) + 1}")
        known: dict[str, list[float]] = defaultdict(list)
        for index, value in measured.items():
            if not isinstance(plan.steps[index], (StartStep, WaitStep)):
                known[signature(plan.steps[index])].append(value)
        self._times = StepTimes(plan.threads, {name: sum(values) / len(values) for name, values in known.items()})
        found = sum(self._times.of(plan.steps))
        self.outside = max(seconds - found, 0.0) if measured else 0.0
        self._scale = (seconds - self.outside) / found if found else 1.0

    @classmethod
    def of(cls, plan: Plan, profile: Profile) -> OneRank:
        """With a time for each step of the plan.  Raises ValueError where the profile is another plan's."""
        measured: dict[int, float] = defaultdict(float)
        for timing in profile.timings:
            if timing.index >= 0:
                measured[timing.index] += timing.seconds
        inputs = sum(timing.seconds for timing in profile.timings if timing.index < 0 and timing.kind == "inputs")
        return cls(plan, profile.seconds, measured, inputs)

    @classmethod
    def by_cost_model(cls, plan: Plan) -> OneRank:
        """Of a step that nobody has measured."""
        return cls(plan, sum(StepTimes(plan.threads, {}).of(plan.steps)))

    def seconds(self, steps: Sequence[Step]) -> list[float]:
        """Of each step by itself."""
        return [self._scale * value for value in self._times.of(steps)]

    def outside_of(self, plan: Plan) -> float:
        """Seconds of what is no step of another plan, which has other inputs."""
        own, whole = (sum(tensor.spec.nbytes for tensor in each.graph.inputs.values()) for each in (plan, self.plan))
        return self.outside - min(self.inputs, self.outside) * (1 - own / whole if whole else 0.0)

    def of_bytes(self, nbytes: int) -> float:
        """Of copying: as many bytes are read and written."""
        return self._scale * self._times.pace * estimate_of_bytes(nbytes, self.plan.threads)


def predict_mesh(
    model: Any,
    mesh: Mapping[str, int],
    images: int,
    one: OneRank,
    network: Network,
    one_host: bool = False,
    columns: Sequence[str] = (),
) -> MeshPrediction:
    """A training step of so many images in all.  one: of one rank with all of them.  one_host: see `peak_bytes`.

    columns: names of dense layers, as in `distribution.SpatialParallel`.

    Raises ValueError for a mesh that cannot cut the model's images or columns, or has more ranks along "batch" than
    images.
    """
    ranks = math.prod(mesh.values())
    if mesh.get("batch", 1) > images:
        raise ValueError(f"mesh: expected at most {images} ranks along batch, for as many images, got {mesh['batch']}")
    found, plans = [], list(_plans(model, mesh, images, columns=columns))
    for plan in plans:
        computing, exchange = _rank(plan, one, network, ranks)
        found.append((computing + one.outside_of(plan), exchange))
    compute, exchange = max(found, key=sum)
    cut = plans[0].column_bytes
    reduction = allreduce(plans[0].trainable_bytes - cut, ranks, network)
    reduction += allreduce(cut, mesh.get("batch", 1), network)
    name = ",".join(f"{axis}={extent}" for axis, extent in mesh.items())
    sharing = SHARING + _SHARED * allreduce(64.0, ranks, network) if ranks > 1 else 0.0
    nbytes = peak_bytes(model, mesh, images, one_host, columns)
    return MeshPrediction(name, ranks, compute + sharing, exchange, reduction, nbytes)


def peak_bytes(
    model: Any,
    mesh: Mapping[str, int],
    images: int,
    one_host: bool = False,
    columns: Sequence[str] = (),
    bound: bool = False,
) -> int:
    """The largest predicted peak of a rank, in a training step of so many images in all.

    one_host: whether all ranks run on one host, where they have one copy of weights and optimizer slots, unless they
    share columns.  bound: with the objects that steps are bound to.
    """
    memory = model._pydt_training.memory
    kept, memory.keeps_gradients = memory.keeps_gradients, False
    try:
        plans = _plans(model, mesh, images, one_host, columns)
        return max(plan.peak_bytes + (plan.bound_bytes if bound else 0) for plan in plans)
    finally:
        memory.keeps_gradients = kept


def _plans(
    model: Any, mesh: Mapping[str, int], images: int, one_host: bool = False, columns: Sequence[str] = ()
) -> Iterator[Plan]:
    """Those of the first rank, of one in the middle, and of the last one."""
    ranks = math.prod(mesh.values())
    for rank in sorted({0, ranks // 2, ranks - 1}):
        with as_rank(mesh, rank, one_host, columns):
            yield model.plan(-(-images // mesh.get("batch", 1)))


def fastest(predictions: Sequence[MeshPrediction], limit: int | None = None) -> MeshPrediction | None:
    """The mesh with the shortest step among those whose ranks fit into so many bytes; None where none does."""
    fitting = [each for each in predictions if limit is None or each.nbytes <= limit]
    return min(fitting, key=lambda each: each.seconds, default=None)


@contextmanager
def as_rank(mesh: Mapping[str, int], rank: int, one_host: bool = False, columns: Sequence[str] = ()) -> Any:
    """While plans are made as in this rank of a mesh.  one_host: see `peak_bytes`.  columns: see `predict_mesh`."""
    ranks, one_host = math.prod(mesh.values()), one_host and not columns
    given: dict[str, Any] = {"sharers": ranks} if one_host else {}
    if ranks > 1:
        every = tuple(range(ranks))
        given["partition"] = Partition(tuple(mesh), tuple(mesh.values()), every, rank, columns=tuple(columns))
    with replica.one_of(ranks, rank=rank, reads_gradients=ranks > 1 and not one_host, **given):
        yield


def _rank(plan: Plan, one: OneRank, network: Network, ranks: int) -> tuple[float, float]:
    """Seconds of a rank's step that it computes, and those of its exchanges."""
    computing, exchange = 0.0, 0.0
    times = one.seconds(plan.steps)
    for i, step in enumerate(plan.steps):
        if isinstance(step.node.op, Exchange):
            exchange += copying(step, one) + waiting(plan.steps, times, i, network)
        else:
            computing += times[i]
    for node in plan.graph.nodes:
        if isinstance(node.op, BatchNorm):  # statistics, and their gradients, of all ranks
            exchange += normalization(node.inputs[0].shape[-1] or 0, ranks, network)
    return computing, exchange


def waiting(steps: Sequence[Step], times: Sequence[float], index: int, network: Network) -> float:
    """Seconds that a rank waits for the messages of an exchange, less what runs meanwhile; 0 for other steps."""
    step = steps[index]
    if not isinstance(step.node.op, Exchange) or _whole(step) is None:
        return 0.0
    kernel: Any = step.node.kernel
    sending = kernel.sent * network.alpha + kernel.sent_bytes(step.node.inputs[0].spec) * network.beta
    return max(sending - (times[index + 1] if isinstance(step, ExchangeStart) else 0.0), 0.0)


def copying(step: Step, one: OneRank) -> float:
    """Seconds that an exchange copies; 0 for other steps."""
    whole = _whole(step) if isinstance(step.node.op, Exchange) else None
    return 0.0 if whole is None else one.of_bytes(_copied(whole))


def _whole(step: Step) -> PassStep | None:
    """The pass that a step of an exchange does, or begins; None where it ends one, or does another thing."""
    whole = step.whole if isinstance(step, ExchangeStart) else step
    return whole if isinstance(whole, PassStep) else None


def _copied(step: PassStep) -> int:
    """Bytes that an exchange reads and writes itself: packed messages, and what it holds where that lies elsewhere."""
    source, target = step.x[:1], step.y[:1]
    if isinstance(step, BackwardStep):
        source, target = step.dy[:1], step.dx[:1]
    ends = [view for view in (*source, *target) if view is not None]
    packed = 0 if step.workspace is None else 2 * step.workspace.spec.nbytes
    return packed + (0 if len(ends) == 2 and ends[0].overlaps(ends[1]) else sum(view.spec.nbytes for view in ends))
