"""Compiles a graph into a plan: passes, schedule, places, and what is tried where a memory limit is not met."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydtconv import config
from pydtconv.conv import matmul_precision
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import variant_of
from pydtconv.graph.ir.graph import CompileOptions, Graph, Tensor, base_of
from pydtconv.graph.memory.buffer_assignment import assign_offsets
from pydtconv.graph.passes.algorithms import left_open
from pydtconv.graph.passes.graph_pass import GraphPass, PassReport, run_passes
from pydtconv.graph.passes.loops import kept_by_loops
from pydtconv.graph.passes.order import PASSES
from pydtconv.graph.plan import MemoryLimitError, Plan
from pydtconv.graph.schedule.convolution_passes import passes_of
from pydtconv.graph.schedule.measured_times import measured
from pydtconv.graph.schedule.memory_limit import choices, little_arithmetic
from pydtconv.graph.schedule.offload import Timeline
from pydtconv.graph.schedule.offload_search import Offload, Search
from pydtconv.graph.schedule.offloaded import Offloaded
from pydtconv.graph.schedule.scheduler import Scheduler
from pydtconv.graph.schedule.steps import Updates
from pydtconv.graph.schedule.transfers import Disk

if TYPE_CHECKING:
    from pydtconv.graph.dump import Dump

#: numbers of tensors of little arithmetic that are tried before the fewest are looked for
TRIED = 8
#: bytes of a gradient on average, where each update is a launch of a device with memory of its own
LARGE_EACH = 4 << 20

#: gets the passes of convolutions whose algorithm is open, and the bytes of the arena; returns whether to choose anew
Tune = Callable[[list[tuple[ConvProblem, str]], int], bool]


def build_plan(
    graph: Graph,
    variant: str | None = None,
    memory_limit: int | None = None,
    slots: float = 0,
    recompute: Collection[Tensor] | None = None,
    updates: Updates | None = None,
    tune: Tune | None = None,
    passes: Sequence[GraphPass] | None = None,
    dump: str | Path | None = None,
    offload: Offload | None = None,
    state_bytes: int = 0,
    gradient_parts: int = 1,
) -> Plan:
    """Compiles a traced graph; the graph is changed by the rewriting and belongs to the plan afterwards.

    variant: convolution variant, None for the active one. memory_limit: bytes that `peak_bytes` may not exceed; where
    the fastest algorithms need more, and normalized images are left out of memory, tensors that take little arithmetic
    are recomputed, one after the other; then algorithms with the smallest workspaces are taken instead, and ever more
    tensors recomputed, by the estimated time that it takes. slots: flat arrays of the optimizer, state_bytes, bytes of
    its other variables, and gradient_parts, of how many processes each keeps a part of the gradients, for the
    prediction only. recompute: tensors that backward computes again where it can, None for those that one pass over
    memory brings back from what is kept anyway. updates: given where the optimizer can apply gradients while backward
    runs; that is planned where the flat array of gradients would be large. tune: called where the variant leaves the
    choice of algorithms open, before it is final. passes: in the place of the table's. dump: a folder for the graph
    after each pass, the schedule and the memory; PYDTCONV_DUMP names one for every plan. offload: where tensors may be
    written to between forward and backward, so that the limit is met; the plan with the least predicted time is taken.

    Raises ValueError for an unknown variant and for a graph whose loss is no scalar, MissingKernelError for an operator
    that no kernel runs, MemoryLimitError when no plan fits.
    """
    if graph.loss is not None and graph.loss.shape != ():
        raise ValueError(f"loss: expected a scalar, got shape {graph.loss.shape}")
    with config.hold_num_threads():
        table = PASSES if passes is None else passes
        compiler = _Compiler(graph, (slots, state_bytes, gradient_parts), updates, table, _dump_into(dump, graph))
        return _build_plan(compiler, variant_of(variant).name, memory_limit, recompute, tune, offload)


def _build_plan(
    compiler: _Compiler,
    variant: str,
    memory_limit: int | None,
    recompute: Collection[Tensor] | None,
    tune: Tune | None,
    offload: Offload | None,
) -> Plan:
    graph = compiler.graph
    compiler.run_passes(CompileOptions(variant, elides=recompute is None, kept_bytes=None if recompute is None else 0))
    plan = compiler.plan(recompute)
    if tune is not None and variant == "AUTO" and tune(passes_of(plan.steps, left_open(graph)), plan.arena_bytes):
        compiler.choose_anew(graph.options)
        plan = compiler.plan(recompute)
    if memory_limit is None or plan.peak_bytes <= memory_limit:
        return compiler.dumped(plan)
    for kept_bytes in _less_kept(graph, plan.peak_bytes - memory_limit):
        compiler.choose_anew(dataclasses.replace(graph.options, kept_bytes=kept_bytes))
        plan = compiler.plan(recompute)
        if plan.peak_bytes <= memory_limit:
            return compiler.dumped(plan)
    if offload is not None:
        return compiler.dumped(compiler.offloading_or_recomputing(offload, variant, memory_limit, recompute))
    smallest = plan
    if recompute is None and graph.elided:  # what else is recomputed has these images in memory
        plan = compiler.recomputing_little(memory_limit)
        if plan.peak_bytes <= memory_limit:
            return compiler.dumped(plan)
        smallest = min(smallest, plan, key=lambda plan: plan.peak_bytes)
    compiler.choose_anew(CompileOptions(variant, workspace_bytes=0, elides=False, kept_bytes=0))
    candidates = choices(graph, Scheduler(graph, ()).readers) if recompute is None else [recompute]
    for choice in candidates:
        plan = compiler.plan(choice)
        if plan.peak_bytes <= memory_limit:
            return compiler.dumped(plan)
        smallest = min(smallest, plan, key=lambda plan: plan.peak_bytes)
    raise MemoryLimitError(memory_limit, smallest.peak_bytes, plan=smallest)


def _less_kept(graph: Graph, over: int) -> list[int]:
    """Bytes to keep where a plan is so many bytes over the limit: what is left without these, then none."""
    every = [each for kept in graph.kept.values() for each in kept]
    total = sum(each.spec.nbytes for each in every if not each.within_backward)
    total += max((each.spec.nbytes for each in every if each.within_backward), default=0) + kept_by_loops(graph)
    return sorted({max(total - over, 0), 0}, reverse=True) if total else []


def _gains_by_updates(graph: Graph) -> bool:
    """Whether a flat array of gradients would be large, and updates change no variable that is a result or assigned to.

    On a device with memory of its own, where each update is a launch: whether gradients are large one by one, too.
    """
    if any(base_of(tensor).variable is not None for tensor in graph.outputs.values()):
        return False
    if any(getattr(update.metric, "trainable", False) for update in graph.metric_updates):
        return False
    known = graph.parameters if graph.sources is None else graph.sources
    trained = [tensor for tensor in known if tensor.variable is not None and tensor.variable.trainable]
    nbytes = sum(tensor.spec.nbytes for tensor in trained)
    least = max(graph.thresholds.applied_gradients, 0 if graph.device == "cpu" else LARGE_EACH * len(trained))
    return nbytes >= least


def _dump_into(folder: str | Path | None, graph: Graph) -> Dump | None:
    if folder is None and not os.environ.get("PYDTCONV_DUMP"):
        return None
    from pydtconv.graph.dump import open_dump

    return open_dump(folder, graph)


class _Compiler:
    """Makes the plans of one graph: runs the passes over it, then the stages behind them."""

    def __init__(
        self,
        graph: Graph,
        state: tuple[float, int, int],
        updates: Updates | None,
        table: Sequence[GraphPass],
        dump: Dump | None,
    ) -> None:
        """state: what the optimizer keeps, the number of flat arrays and bytes besides; parts of the gradients."""
        self.graph = graph
        self.slots, self.state_bytes, self.gradient_parts = state
        self.updates = updates
        self.table = table
        self.dump = dump
        self.reports: dict[str, PassReport] = {}

    def run_passes(self, options: CompileOptions) -> None:
        graph = self.graph
        graph.options = options
        graph.before_choice.clear()
        self._run(start=None)
        self.updates = self.updates if _gains_by_updates(graph) else None

    def choose_anew(self, options: CompileOptions) -> None:
        """Runs the passes from the choice of algorithms on once more."""
        self.graph.options = options
        self._run(start="algorithms")

    def _run(self, start: str | None) -> None:
        watch = None if self.dump is None else self.dump.graph_after
        self.reports.update((report.name, report) for report in run_passes(self.graph, self.table, start, watch))

    def dumped(self, plan: Plan) -> Plan:
        """The plan, after it has been dumped where that is wanted."""
        if self.dump is not None:
            self.dump.stages(plan)
        return plan

    def plan(self, recompute: Collection[Tensor] | None) -> Plan:
        """The plan in which backward recomputes these tensors, None for those that are cheap to."""
        return self.finish(self.layout(recompute))

    def offloading_or_recomputing(
        self, offload: Offload, variant: str, limit: int, recompute: Collection[Tensor] | None
    ) -> Plan:
        """The plan with the least predicted time, else one that recomputes tensors of little arithmetic alone, which
        may need less at a time.  Raises MemoryLimitError.
        """
        try:
            return self.offloading(offload, variant, limit)
        except MemoryLimitError as error:
            smallest = error.smallest_bytes
        self.choose_anew(CompileOptions(variant, kept_bytes=0))
        if recompute is not None or not self.graph.elided:
            raise MemoryLimitError(limit, smallest)
        plan = self.recomputing_little(limit)
        if plan.peak_bytes > limit:
            raise MemoryLimitError(limit, min(smallest, plan.peak_bytes))
        return plan

    def recomputing_little(self, limit: int) -> Plan:
        """The plan within the limit that recomputes the fewest tensors of little arithmetic, else the smallest one.

        More of them may take more at a time: some numbers of them are tried, whatever the limit is.
        """
        every = little_arithmetic(self.graph, Scheduler(self.graph, ()).readers)
        count = len(every)
        if not every:
            return self.plan(None)
        plans = {tried: self.plan(every[tried - 1]) for tried in {-(-count * i // TRIED) for i in range(1, TRIED + 1)}}
        few, many = 0, min(plans, key=lambda tried: (plans[tried].peak_bytes, tried))
        while plans[many].peak_bytes <= limit and many - few > 1:  # the first is too few, the second enough
            middle = (few + many) // 2
            if middle not in plans:
                plans[middle] = self.plan(every[middle - 1])
            few, many = (few, middle) if plans[middle].peak_bytes <= limit else (middle, many)
        return plans[many]

    def layout(self, recompute: Collection[Tensor] | None, overlaps: bool = True) -> Scheduler:
        """The steps of that plan.  overlaps: see Scheduler."""
        scheduler = Scheduler(self.graph, recompute, self.updates, overlaps)
        scheduler.run()
        return scheduler

    def offloading(self, offload: Offload, variant: str, limit: int) -> Plan:
        """The plan within the limit with the least predicted time.  Raises MemoryLimitError.

        Measured speeds of disk and steps differ from run to run.  Results must not: what they depend on, the options
        for algorithms and for elided images, is chosen by estimated speeds alone.
        """

        def fixed(scheduler: Scheduler) -> int:
            return self.finish(scheduler, placed=False).peak_bytes

        def finish(scheduler: Scheduler, found: Timeline, most: int) -> Plan:
            plan = self.finish(scheduler, placed=False)
            plan.offloaded = Offloaded.into(scheduler, found, offload)
            plan.backward_start = scheduler.backward_start
            plan.storages = list(scheduler.storages)
            plan.arena_bytes = assign_offsets(plan.storages, most if found.most <= most else None)
            return plan

        threads = config.num_threads()
        layout = functools.partial(self.layout, overlaps=False)  # what is offloaded is found between whole passes

        def search(offload: Offload, times: dict[str, float]) -> Plan:
            found = Search(self.graph, offload, threads, times, self.choose_anew, layout, fixed)
            plan, smallest = found.run(variant, limit, finish)
            if plan is None:
                raise MemoryLimitError(limit, smallest)
            return plan

        if self.graph.device != "cpu":
            return search(offload, {})
        usual = dataclasses.replace(offload, disk=Disk())
        if offload.like is None:
            usual = dataclasses.replace(usual, like=search(usual, {}).graph.options)
        try:
            return search(dataclasses.replace(offload, like=usual.like), measured(threads))
        except MemoryLimitError:  # transfers at other times leave other gaps in memory
            return search(usual, {})

    def finish(self, scheduler: Scheduler, placed: bool = True) -> Plan:
        """The plan of these steps; placed: whether storages get their places."""
        graph = self.graph
        storages = list(scheduler.storages)
        ends = [*graph.inputs.values(), *graph.outputs.values()]
        return Plan(
            graph=graph,
            steps=scheduler.steps,
            storages=storages,
            arena_bytes=assign_offsets(storages) if placed else 0,
            gradient_order=scheduler.gradient_order,
            variant=graph.options.variant,
            slots=self.slots,
            state_bytes=self.state_bytes,
            gradient_parts=self.gradient_parts,
            matmul_precision=matmul_precision.described(graph.device),
            applies_gradients=self.updates is not None and bool(scheduler.gradient_order),
            sharers=1 if self.updates is None or not scheduler.gradient_order else self.updates.sharers,
            backward_start=scheduler.backward_start,
            views={tensor: scheduler.sharing.view(tensor) for tensor in ends},
            gradient_views=scheduler.gradient_views,
            algorithms=dict(graph.algorithms),
            passes=list(self.reports.values()),
        )
