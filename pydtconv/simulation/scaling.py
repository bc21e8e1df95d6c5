"""The step of P ranks: backward, reductions beside it or behind it, and the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydtconv.simulation.collectives import allreduce, normalization, work_of_cores
from pydtconv.simulation.workload import Work, Workload
from pydtconv.support.network import Network

BUCKET_BYTES = 4 << 20


@dataclass(frozen=True)
class Prediction:
    """A step of several ranks, in seconds.

    images: of all ranks.  compute: the step of the rank with most images, alone.  communication: all reductions
    together.  statistics: in which batch normalization sums its statistics.  overlapped, blocking: the whole step.
    efficiency, blocking_efficiency: images/s over P times one rank's.

    The overlapped step is compute and three kinds of lost time.  spread: what the step takes longer because steps and
    reductions take different times, and all wait for the slowest.  link: what it takes longer than over links that
    carry all bytes at once.  waiting: for what else of communication is not hidden: latency, additions, statistics.
    """

    ranks: int
    algorithm: str
    images: int
    compute: float
    communication: float
    overlapped: float
    blocking: float
    efficiency: float = 1.0
    blocking_efficiency: float = 1.0
    statistics: float = 0.0
    link: float = 0.0
    spread: float = 0.0

    @property
    def waiting(self) -> float:
        return self.overlapped - self.compute - self.link - self.spread

    @property
    def lost(self) -> dict[str, float]:
        """The portions of the overlapped step that each kind of lost time takes."""
        return {name: getattr(self, name) / self.overlapped for name in ("spread", "link", "waiting")}

    @property
    def images_per_second(self) -> float:
        return self.images / self.overlapped

    @property
    def hidden(self) -> float | None:
        """The portion of communication that overlap hides; None where there is none."""
        if not self.communication:
            return None
        exposed = self.overlapped - self.compute - self.statistics - self.spread
        return max(1 - exposed / self.communication, 0.0)


@dataclass(frozen=True)
class Timeline:
    """Reductions beside backward.  arrivals: of the buckets; backward_end: with what reductions take from it.

    beside: seconds of the buckets' costs, alone, that fall into backward.
    """

    arrivals: tuple[float, ...]
    backward_end: float
    beside: float


def timeline(work: Work, costs: Sequence[float], loads: Sequence[float] | None = None) -> Timeline:
    """Buckets that are reduced one after the other, each from when it is ready.

    loads: seconds of the cores in each reduction (none by default).  Beside computing they come on top of its cost, and
    computing stands still in them; after backward they are within the cost.
    """
    clock = computed = beside = 0.0
    arrivals, over = [], None
    for bucket, cost, load in zip(work.buckets, costs, loads or [0.0] * len(costs), strict=True):
        clock += max(bucket.ready - computed, 0.0)
        computed = max(computed, bucket.ready)
        left = work.backward_end - computed
        portion = min(left / cost, 1.0) if cost else 1.0
        if over is None and portion < 1:
            over = clock + portion * (cost + load)
        computed = min(computed + cost, work.backward_end)
        clock += cost + portion * load
        beside += portion * cost
        arrivals.append(clock)
    return Timeline(tuple(arrivals), clock + work.backward_end - computed if over is None else over, beside)


def overlapped(work: Work, costs: Sequence[float], loads: Sequence[float] | None = None) -> float:
    """Seconds of a step whose buckets are reduced as in `timeline`.

    After backward the optimizer takes its step over each bucket in turn as soon as that has arrived.
    """
    line = timeline(work, costs, loads)
    now = line.backward_end
    for bucket, arrival in zip(work.buckets, line.arrivals, strict=True):
        now = max(now, arrival) + work.optimizer * bucket.share
    return now + work.after


def blocking(work: Work, costs: Sequence[float]) -> float:
    """Seconds of a step that reduces its buckets when backward is over."""
    return work.seconds + sum(costs)


def predict(
    workload: Workload,
    ranks: int,
    images: int,
    network: Network,
    algorithm: str = "best",
    bucket_bytes: int = BUCKET_BYTES,
    synchronized: bool = False,
) -> Prediction:
    """The step of so many ranks with so many images in all, shared as evenly as can be; the fullest rank counts.

    A step takes what its slowest rank and its slowest reductions are expected to (`Spread`).  synchronized: whether
    batch normalization takes its statistics over all ranks.
    """
    if images < 1:
        raise ValueError(f"images: expected 1 or more, got {images}")
    share = -(-images // ranks)
    work, spread = workload.work(share, bucket_bytes), workload.spread(share)

    def step(network: Network, of_steps: float = 1.0, of_reductions: float = 1.0) -> tuple[float, ...]:
        """Seconds overlapped, blocking, of all reductions, and of statistics."""
        costs = [of_reductions * allreduce(bucket.nbytes, ranks, network, algorithm) for bucket in work.buckets]
        loads = [work_of_cores(bucket.nbytes, ranks, network, algorithm) for bucket in work.buckets]
        statistics = sum(normalization(c, ranks, network) for c in workload.channels) if synchronized else 0.0
        late = work.times(of_steps)
        return overlapped(late, costs, loads) + statistics, blocking(late, costs) + statistics, sum(costs), statistics

    unlinked, *_ = step(replace(network, beta=0.0, delta=0.0))
    even, _, communication, statistics = step(network)
    late, late_blocking, *_ = step(network, spread.of_steps(ranks), spread.of_reductions(ranks))
    return Prediction(
        ranks,
        algorithm,
        images,
        work.seconds,
        communication,
        late,
        late_blocking,
        statistics=statistics,
        link=even - unlinked,
        spread=late - even,
    )


def weak_scaling(
    workload: Workload,
    ranks: Sequence[int],
    batch_per_rank: int,
    network: Network,
    algorithm: str,
    bucket_bytes: int,
    synchronized: bool = False,
) -> list[Prediction]:
    """Predictions with batch_per_rank images on each rank."""
    one = predict(workload, 1, batch_per_rank, network)
    found = [predict(workload, p, p * batch_per_rank, network, algorithm, bucket_bytes, synchronized) for p in ranks]
    return [_with_efficiency(prediction, one) for prediction in found]


def strong_scaling(
    workload: Workload,
    ranks: Sequence[int],
    batch: int,
    network: Network,
    algorithm: str,
    bucket_bytes: int,
    synchronized: bool = False,
) -> list[Prediction]:
    """Predictions with `batch` images on all ranks together."""
    one = predict(workload, 1, batch, network)
    found = [predict(workload, p, batch, network, algorithm, bucket_bytes, synchronized) for p in ranks]
    return [_with_efficiency(prediction, one) for prediction in found]


def _with_efficiency(prediction: Prediction, one: Prediction) -> Prediction:
    alone = one.images / one.overlapped * prediction.ranks
    rates = (prediction.images / prediction.overlapped, prediction.images / prediction.blocking)
    values = {**vars(prediction), "efficiency": rates[0] / alone, "blocking_efficiency": rates[1] / alone}
    return Prediction(**values)
