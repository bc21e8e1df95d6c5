"""The plan of a graph for one batch shape: what runs, in which order, where everything lies, and what it will cost."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydtconv import config
from pydtconv.conv import products
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import variant_of
from pydtconv.graph.ir.graph import CompileOptions, Graph, Node, Tensor
from pydtconv.graph.memory.buffer_assignment import assign_offsets
from pydtconv.graph.memory.storage import Storage, View
from pydtconv.graph.passes.algorithms import left_open
from pydtconv.graph.passes.graph_pass import GraphPass, PassReport, run_passes
from pydtconv.graph.passes.table import PASSES
from pydtconv.graph.schedule.convolution_passes import passes_of
from pydtconv.graph.schedule.measured_times import measured
from pydtconv.graph.schedule.memory_limit import choices, seconds_of
from pydtconv.graph.schedule.offload import Timeline
from pydtconv.graph.schedule.offload_search import Offload, Search
from pydtconv.graph.schedule.offloaded import Offloaded
from pydtconv.graph.schedule.rematerialization import base_of
from pydtconv.graph.schedule.scheduler import Scheduler
from pydtconv.graph.schedule.steps import PassStep, RecomputeStep, Step, Updates

if TYPE_CHECKING:
    from pydtconv.graph.dump import Dump

MIB = 1 << 20
#: bytes of gradients from which on they are applied one by one: below, a call for each costs more than it gains
LARGE_GRADIENTS = 4 << 20

#: told the passes of convolutions whose algorithm is open, and the bytes of the arena; returns whether to choose anew
Tune = Callable[[list[tuple[ConvProblem, str]], int], bool]


class MemoryLimitError(MemoryError):
    """No plan fits in the memory limit of `limit` bytes; `smallest_bytes` is the least that a plan needs.

    where: of which process that is, such as " on rank 2", where several train together.
    """

    def __init__(self, limit: int, smallest: int, where: str = "") -> None:
        super().__init__(
            f"memory_limit: expected at least {smallest} bytes ({smallest / MIB:.1f} MiB), the smallest plan of this "
            f"model and batch size{where}; got {limit} bytes ({limit / MIB:.1f} MiB)"
        )
        self.limit = limit
        self.smallest_bytes = smallest


@dataclass(eq=False)
class Plan:
    """A compiled graph.

    steps: calls in order.  storages: pieces of the arena with life times and offsets.  arena_bytes: its size.
    gradient_order: parameters in the order in which backward completes their gradients.
    applies_gradients: whether the optimizer applies each gradient as soon as it is complete, so that there is no flat
    array of gradients.  slots: flat arrays that the optimizer keeps beside parameters and gradients.  state_bytes: of
    the optimizer's other variables.  backward_start: the first step of backward.  views: where inputs and outputs
    lie.  gradient_views: where the gradients lie that are results, by name.  passes: what each pass over the graph did.
    threads: that its workspaces have room for, and that it runs on.  matmul_precision: what float32 is multiplied as,
    in words; empty for "highest".  offloaded: what leaves memory in between, and the
    predicted time lines; None where nothing does.
    """

    graph: Graph
    steps: list[Step]
    storages: list[Storage]
    arena_bytes: int
    gradient_order: list[Tensor]
    variant: str
    slots: int = 0
    state_bytes: int = 0
    applies_gradients: bool = False
    backward_start: int = 0
    views: dict[Tensor, View] = field(default_factory=dict)
    gradient_views: dict[str, View] = field(default_factory=dict)
    algorithms: dict[Node, dict[str, str]] = field(default_factory=dict)
    passes: list[PassReport] = field(default_factory=list)
    threads: int = field(default_factory=config.num_threads)
    matmul_precision: str = field(default_factory=products.described)
    offloaded: Offloaded | None = None

    @property
    def parameter_bytes(self) -> int:
        """Bytes of all variables that the graph uses."""
        return sum(tensor.spec.nbytes for tensor in self.graph.parameters)

    @property
    def trainable_bytes(self) -> int:
        """Bytes of the variables that get a gradient."""
        return sum(tensor.spec.nbytes for tensor in self.gradient_order)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the flat array of gradients; 0 where they are applied one by one, within the arena."""
        return 0 if self.applies_gradients else self.trainable_bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes of what the optimizer keeps."""
        return self.slots * self.trainable_bytes + self.state_bytes

    @property
    def transient_bytes(self) -> int:
        """The largest workspace that is allocated at the time of a call instead of being placed ahead."""
        return max((step.transient_bytes for step in self.steps if isinstance(step, PassStep)), default=0)

    @property
    def peak_bytes(self) -> int:
        """Predicted peak: variables, gradients, optimizer slots, the arena, and workspaces outside of it."""
        return self.parameter_bytes + self.gradient_bytes + self.slot_bytes + self.arena_bytes + self.transient_bytes

    def live_bytes(self) -> list[int]:
        """Bytes of the arena in use at each step, without holes."""
        change = [0] * (len(self.steps) + 2)
        for storage in self.storages:
            for first, last in storage.lives:
                change[first] += storage.nbytes
                change[last + 1] -= storage.nbytes
        total, result = 0, []
        for delta in change[: max(len(self.steps), 1)]:
            total += delta
            result.append(total)
        return result

    def peak_step(self) -> int:
        """The step at which most of the arena is in use."""
        live = self.live_bytes()
        return max(range(len(live)), key=live.__getitem__)

    def live_at(self, step: int) -> list[Storage]:
        """Storages in use at a step, the largest first."""
        alive = [storage for storage in self.storages if storage.lives_at(step)]
        return sorted(alive, key=lambda storage: -storage.nbytes)

    @property
    def recompute_seconds(self) -> float:
        """Estimated time of all that is computed again, on one core."""
        return sum(seconds_of(step.node) for step in self.steps if isinstance(step, RecomputeStep))

    @property
    def recomputed(self) -> set[Node]:
        """Nodes whose output backward computes again instead of finding it stored."""
        return {step.node for step in self.steps if isinstance(step, RecomputeStep)}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a node: name, op, output shape, algorithm by pass, bytes of output, saved arrays and workspaces."""
        seen: dict[Node, dict[str, Any]] = {}
        recomputed = self.recomputed
        for step in self.steps:
            node = step.node
            if node not in seen:
                seen[node] = {
                    "node": node.name,
                    "op": node.op.name,
                    "output": node.outputs[0].shape,
                    "algorithms": self.algorithms.get(node, {}),
                    "recomputed": node in recomputed,
                    "output_bytes": sum(tensor.spec.nbytes for tensor in node.outputs),
                    "saved_bytes": 0,
                    "workspace_bytes": 0,
                }
            if not isinstance(step, PassStep):
                continue
            saved = sum(view.spec.nbytes for view in step.saved.values())
            seen[node]["saved_bytes"] = max(seen[node]["saved_bytes"], saved)
            workspace = step.transient_bytes or (step.workspace.spec.nbytes if step.workspace else 0)
            seen[node]["workspace_bytes"] = max(seen[node]["workspace_bytes"], workspace)
        yield from seen.values()

    def __str__(self) -> str:
        lines = [f"{'node':40} {'op':18} {'output':22} {'algorithm':30} {'MiB out':>9} {'saved':>8} {'work':>8}"]
        for row in self.rows():
            algorithm = " ".join(dict.fromkeys(row["algorithms"].values()))
            figures = (row["output_bytes"], row["saved_bytes"], row["workspace_bytes"])
            out, saved, work = (value / MIB for value in figures)
            shape = "x".join(map(str, row["output"])) or "scalar"
            names = f"{row['node'][:40]:40} {row['op'][:18]:18} {shape[:22]:22} {algorithm[:30]:30}"
            again = " recomputed" if row["recomputed"] else ""
            lines.append(f"{names} {out:9.2f} {saved:8.2f} {work:8.2f}{again}")
        parts = {
            "variables": self.parameter_bytes,
            "gradients": self.gradient_bytes,
            "optimizer slots": self.slot_bytes,
            "arena": self.arena_bytes,
            "workspaces at call time": self.transient_bytes,
            "predicted peak": self.peak_bytes,
        }
        lines += [f"{name:>24}: {value / MIB:10.2f} MiB" for name, value in parts.items() if value]
        if self.matmul_precision:
            lines.append(f"{'float32 products':>24}: {self.matmul_precision}")
        if self.offloaded is not None:
            lines += self.offloaded.lines()
        did = [str(report) for report in self.passes if report.changed or report.before != report.after]
        if did:
            lines.append(f"{'passes':>24}: {'; '.join(did)}  (change of nodes, *nodes new or changed)")
        return "\n".join(lines)

    def plot(self, path: str | Path) -> Path:
        """Draws memory over the step as a picture (PNG, SVG, PDF by suffix), naming the tensors that make the peak.

        Raises ImportError when matplotlib is not installed (extra `plot`).
        """
        from pydtconv.graph.memory.plot import plot_memory

        return plot_memory(self, Path(path))


def build_plan(
    graph: Graph,
    variant: str | None = None,
    memory_limit: int | None = None,
    slots: int = 0,
    recompute: Collection[Tensor] | None = None,
    updates: Updates | None = None,
    tune: Tune | None = None,
    passes: Sequence[GraphPass] | None = None,
    dump: str | Path | None = None,
    offload: Offload | None = None,
    state_bytes: int = 0,
) -> Plan:
    """Compiles a traced graph; the graph is changed by the rewriting and belongs to the plan afterwards.

    variant: convolution variant, None for the active one. memory_limit: bytes that `peak_bytes` may not exceed; where
    the fastest algorithms need more, those with the smallest workspaces are taken instead, and then ever more tensors
    recomputed, by the estimated time that it takes. slots: flat arrays of the optimizer, and state_bytes, bytes of its
    other variables, for the prediction only. recompute: tensors that backward computes again where it can, None for
    those that one pass over memory brings back from what is kept anyway. updates: given where the optimizer can apply
    gradients while backward runs; that is planned where the flat array of gradients would be large. tune: called where
    the variant leaves the choice of algorithms open, before it is final. passes: in the place of the table's. dump: a
    folder for the graph after each pass, the schedule and the memory; PYDTCONV_DUMP names one for every plan. offload:
    where tensors may be written to between forward and backward, so that the limit is met; the plan with the least
    predicted time is taken.

    Raises ValueError for an unknown variant and for a graph whose loss is no scalar, MissingKernelError for an operator
    that no kernel runs, MemoryLimitError when no plan fits.
    """
    if graph.loss is not None and graph.loss.shape != ():
        raise ValueError(f"loss: expected a scalar, got shape {graph.loss.shape}")
    with config.hold_num_threads():
        table = PASSES if passes is None else passes
        compiler = _Compiler(graph, (slots, state_bytes), updates, table, _dump_into(dump, graph))
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
        return compiler.dumped(compiler.offloading(offload, variant, memory_limit))
    compiler.choose_anew(CompileOptions(variant, workspace_bytes=0, elides=False, kept_bytes=0))
    smallest = plan.peak_bytes
    candidates = choices(graph, Scheduler(graph, ()).readers) if recompute is None else [recompute]
    for choice in candidates:
        plan = compiler.plan(choice)
        if plan.peak_bytes <= memory_limit:
            return compiler.dumped(plan)
        smallest = min(smallest, plan.peak_bytes)
    raise MemoryLimitError(memory_limit, smallest)


def _less_kept(graph: Graph, over: int) -> list[int]:
    """Bytes to keep where a plan is so many bytes over the limit: what is left without these, then none."""
    every = [each for kept in graph.kept.values() for each in kept]
    total = sum(each.spec.nbytes for each in every if not each.within_backward)
    total += max((each.spec.nbytes for each in every if each.within_backward), default=0)
    return sorted({max(total - over, 0), 0}, reverse=True) if total else []


def _gains_by_updates(graph: Graph) -> bool:
    """Whether a flat array of gradients would be large, and no result is a variable, which updates change."""
    if any(base_of(tensor).variable is not None for tensor in graph.outputs.values()):
        return False
    known = graph.parameters if graph.sources is None else graph.sources
    trained = [tensor for tensor in known if tensor.variable is not None and tensor.variable.trainable]
    return sum(tensor.spec.nbytes for tensor in trained) >= LARGE_GRADIENTS


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
        state: tuple[int, int],
        updates: Updates | None,
        table: Sequence[GraphPass],
        dump: Dump | None,
    ) -> None:
        """state: what the optimizer keeps, the number of flat arrays and bytes besides."""
        self.graph = graph
        self.slots, self.state_bytes = state
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

    def layout(self, recompute: Collection[Tensor] | None, overlaps: bool = True) -> Scheduler:
        """The steps of that plan.  overlaps: see Scheduler."""
        scheduler = Scheduler(self.graph, recompute, self.updates, overlaps)
        scheduler.run()
        return scheduler

    def offloading(self, offload: Offload, variant: str, limit: int) -> Plan:
        """The plan within the limit with the least predicted time.  Raises MemoryLimitError."""

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
        search = Search(self.graph, offload, threads, lambda: measured(threads), self.choose_anew, layout, fixed)
        plan, smallest = search.run(variant, limit, finish)
        if plan is None:
            raise MemoryLimitError(limit, smallest)
        return plan

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
            applies_gradients=self.updates is not None and bool(scheduler.gradient_order),
            backward_start=scheduler.backward_start,
            views={tensor: scheduler.sharing.view(tensor) for tensor in ends},
            gradient_views=scheduler.gradient_views,
            algorithms=dict(graph.algorithms),
            passes=list(self.reports.values()),
        )
