"""The cheapest mix of recomputation and offload that meets a memory limit, by predicted time.

The fastest algorithms of convolutions are kept while any mix with them meets the limit, so that the results are those
of training without a limit; only then those with smaller workspaces are taken, at last those with the smallest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydtconv.graph.ir.graph import CompileOptions, Graph, Tensor
from pydtconv.graph.memory.storage import Storage
from pydtconv.graph.schedule.layerwise import by_layers
from pydtconv.graph.schedule.memory_limit import choices
from pydtconv.graph.schedule.offload import Demand, Timeline, chosen, demand, just_in_time, timeline
from pydtconv.graph.schedule.scheduler import Scheduler
from pydtconv.graph.schedule.step_times import StepTimes
from pydtconv.graph.schedule.transfers import Disk

#: shares of the memory for which storages are chosen to leave: with less than may be taken, transfers have more time
SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3)
#: shares of the memory that a workspace may take where the fastest algorithms need too much
WORKSPACES = (0.25, 0.05, 0.0)
#: where gaps between storages have made a plan too large, in turn: shares of the memory beyond the least that may be in
#: use, and how many times its predicted time a transfer is given (None: all that there is)
PLACED = ((1.0, None), (1.0, 2.0), (1.0, 1.5), (0.85, 1.5), (0.6, 1.3), (0.3, 1.3), (0.0, 1.3))


class PlanSize(Protocol):
    """What the search asks of a plan."""

    @property
    def peak_bytes(self) -> int: ...


PlanType = TypeVar("PlanType", bound=PlanSize)


@dataclass(frozen=True)
class Offload:
    """Where storages may go.  folder: of the scratch file, None for a plan that does not run.

    like: what an earlier plan was compiled for, whose algorithms are to be kept.  layerwise: all that may leave leaves,
    layer by layer (layerwise.py), in the place of a schedule.
    """

    disk: Disk
    folder: str | None = None
    like: CompileOptions | None = None
    layerwise: bool = False


@dataclass(frozen=True)
class Mix:
    """What is recomputed, and for which share of the memory storages leave; seconds: predicted."""

    seconds: float
    options: CompileOptions
    recompute: Collection[Tensor] | None
    share: float


class Search:
    """A search for one limit.

    times: measured seconds of steps.  fixed: bytes besides the arena.  choose: compiles the graph with other options.
    layout: the schedule that recomputes these tensors.
    """

    def __init__(
        self,
        graph: Graph,
        offload: Offload,
        threads: int,
        times: dict[str, float],
        choose: Callable[[CompileOptions], None],
        layout: Callable[[Collection[Tensor] | None], Scheduler],
        fixed: Callable[[Scheduler], int],
    ) -> None:
        self.graph = graph
        self.disk = offload.disk
        self.like = offload.like
        self.layerwise = offload.layerwise
        self.times = StepTimes(threads, times)
        self.leasts: list[tuple[int, Collection[Tensor] | None]] = []
        self.choose = choose
        self.layout = layout
        self.fixed = fixed
        self.budget = 0  # bytes that the arena may take

    def run(
        self, variant: str, limit: int, finish: Callable[[Scheduler, Timeline, int], PlanType]
    ) -> tuple[PlanType | None, int]:
        """The plan with the least predicted time within the limit, or None, and the smallest peak that was found.

        finish: gives the plan of a schedule with transfers, in so many bytes of the arena where that can be.
        """
        usual = CompileOptions(variant, kept_bytes=0)
        if self.layerwise:
            return self._by_layers(usual, limit, finish)
        stored = dataclasses.replace(usual, elides=False)
        for share in (None, *WORKSPACES) if self.like is None else (None,):
            groups = [dataclasses.replace(stored, workspace_bytes=int((share or 0) * self.budget))]
            if share is None:
                groups = [usual, stored] if self.like is None else [self.like]
            mixes: list[Mix] = []
            self.leasts.clear()
            for options in groups:
                mixes += self._mixes(options, limit, min((mix.seconds for mix in mixes), default=float("inf")))
            for mix in sorted(mixes, key=lambda mix: mix.seconds):
                plan = self._plan(mix, limit, finish)
                if plan.peak_bytes <= limit:
                    return plan, plan.peak_bytes
        smallest = 1 << 62
        for least, recompute in sorted(self.leasts, key=lambda each: each[0]):  # whatever it costs
            if least >= smallest:
                break
            plan = self._least(recompute, limit, finish)
            if plan.peak_bytes <= limit:
                return plan, plan.peak_bytes
            smallest = min(smallest, plan.peak_bytes)
        return None, smallest

    def _by_layers(
        self, usual: CompileOptions, limit: int, finish: Callable[[Scheduler, Timeline, int], PlanType]
    ) -> tuple[PlanType | None, int]:
        """The plan layer by layer, with the fastest algorithms where it fits with them."""
        smallest = 1 << 62
        stored = dataclasses.replace(usual, elides=False)
        smaller = [dataclasses.replace(stored, workspace_bytes=int(share * limit)) for share in WORKSPACES]
        for options in [usual, stored, *smaller] if self.like is None else [self.like]:
            self.choose(options)
            scheduler = self.layout(None if options.elides else ())
            most = limit - self.fixed(scheduler)
            plan = finish(scheduler, by_layers(self._demand(scheduler), scheduler.steps, self.disk), most)
            if plan.peak_bytes <= limit:
                return plan, plan.peak_bytes
            smallest = min(smallest, plan.peak_bytes)
        return None, smallest

    def _choices(self, options: CompileOptions) -> Iterator[Collection[Tensor] | None]:
        if options.elides:
            yield None
        else:
            yield from choices(self.graph, Scheduler(self.graph, ()).readers)

    def _mixes(self, options: CompileOptions, limit: int, best: float) -> Iterator[Mix]:
        """Mixes that may meet the limit; none once computing alone takes longer than the best."""
        self.choose(options)
        for recompute in self._choices(options):
            scheduler = self.layout(recompute)
            needs = self._demand(scheduler)
            fixed = self.fixed(scheduler)
            budget = self.budget = max(limit - fixed, 0)
            self.leasts.append((fixed + needs.least, recompute))
            slower = sum(needs.seconds) >= best
            if slower and options.workspace_bytes != 0:
                return
            if slower or needs.least > budget:
                continue
            for share in SHARES:
                leaving = chosen(needs, int(share * budget))
                found = timeline(needs, leaving, budget, self.disk)
                if found.most <= budget:
                    best = min(best, found.seconds)
                    yield Mix(found.seconds, options, recompute, share)
                if not found.waited:
                    break

    def _demand(self, scheduler: Scheduler) -> Demand:
        graph = self.graph
        ends = [*graph.outputs.values(), *([graph.loss] if graph.loss is not None else [])]
        kept = [scheduler.sharing.view(tensor).buffer for tensor in ends]
        seconds = self.times.of(scheduler.steps)
        stays = {buffer for buffer in kept if isinstance(buffer, Storage)}
        least = graph.thresholds.offloaded
        return demand(scheduler.steps, list(scheduler.storages), stays, scheduler.backward_start, seconds, least)

    def _plan(self, mix: Mix, limit: int, finish: Callable[[Scheduler, Timeline, int], PlanType]) -> PlanType:
        """The mix's plan, with less in use where storages do not fit into the memory without gaps."""
        self.choose(mix.options)
        scheduler = self.layout(mix.recompute)
        most = limit - self.fixed(scheduler)
        for part, margin in PLACED:
            scheduler = self.layout(mix.recompute)
            needs = self._demand(scheduler)
            budget = needs.least + int(part * max(most - needs.least, 0))
            found = timeline(needs, chosen(needs, int(mix.share * budget)), budget, self.disk)
            plan = finish(scheduler, found if margin is None else just_in_time(found, margin), most)
            if plan.peak_bytes <= limit:
                break
        return plan

    def _least(
        self,
        recompute: Collection[Tensor] | None,
        limit: int,
        finish: Callable[[Scheduler, Timeline, int], PlanType],
    ) -> PlanType:
        """The plan that keeps as little as can be."""
        scheduler = self.layout(recompute)
        most = limit - self.fixed(scheduler)
        needs = self._demand(scheduler)
        least = needs.least
        return finish(scheduler, timeline(needs, chosen(needs, least), least, self.disk), most)
