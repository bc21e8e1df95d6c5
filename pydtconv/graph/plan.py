"""The plan of a graph for one batch shape: what runs, in which order, where everything lies, and what it will cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydtconv import config
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.memory.storage import Storage, View
from pydtconv.graph.passes.graph_pass import PassReport
from pydtconv.graph.schedule.memory_limit import seconds_of
from pydtconv.graph.schedule.offloaded import Offloaded
from pydtconv.graph.schedule.steps import STAGED, PassStep, RecomputeStep, Step

MIB = 1 << 20
#: bytes of Python's objects that a step is bound to: 3.2 KB in a plan of UNet to 3.7 KB in one of DenseNet121
_BOUND = 3500


class MemoryLimitError(MemoryError):
    """No plan fits in the memory limit of `limit` bytes; `smallest_bytes` is the least that a plan needs.

    `fixed_bytes` are those of variables, gradients and optimizer slots, 0 where that is not known.

    where: of which process that is, such as " on rank 2", where several train together.  plan: that smallest one.
    """

    def __init__(self, limit: int, smallest: int, where: str = "", plan: Plan | None = None) -> None:
        reason = "" if plan is None else f"; {plan.needs_most(limit)}"
        super().__init__(
            f"memory_limit: expected at least {smallest} bytes ({smallest / MIB:.1f} MiB), the smallest plan of this "
            f"model and batch size{where}; got {limit} bytes ({limit / MIB:.1f} MiB){reason}"
        )
        self.limit = limit
        self.smallest_bytes = smallest
        self.fixed_bytes = 0 if plan is None else plan.fixed_bytes


@dataclass(eq=False, repr=False)
class Plan:
    """A compiled graph.  `print(plan)` shows its table; a notebook shows what is in memory over the steps.

    steps: calls in order.  storages: pieces of the arena with life times and offsets.  arena_bytes: its size.
    gradient_order: parameters in the order in which backward completes their gradients.
    applies_gradients: whether the optimizer applies each gradient as soon as it is complete, so that there is no flat
    array of gradients.  sharers: how many processes of a host have one copy of trained variables and slots, of which
    the bytes are this process's part.  slots: flat arrays that the optimizer keeps beside parameters and gradients; of
    some a part, where processes share them.  state_bytes: of the optimizer's other variables.  gradient_parts: of how
    many processes each keeps a part of the gradients.  backward_start: the first step of backward.  views: where inputs
    and outputs lie.  gradient_views: where the gradients lie that are results, by name.  passes: what each pass over
    the graph did.  threads: that its workspaces have room for, and that it runs on.  matmul_precision: what float32 is
    multiplied as, in words; empty for "highest".  offloaded: what leaves memory in between, and the
    predicted time lines; None where nothing does.
    """

    graph: Graph
    steps: list[Step]
    storages: list[Storage]
    arena_bytes: int
    gradient_order: list[Tensor]
    variant: str
    slots: float = 0
    state_bytes: int = 0
    gradient_parts: int = 1
    applies_gradients: bool = False
    sharers: int = 1
    backward_start: int = 0
    views: dict[Tensor, View] = field(default_factory=dict)
    gradient_views: dict[str, View] = field(default_factory=dict)
    algorithms: dict[Node, dict[str, str]] = field(default_factory=dict)
    passes: list[PassReport] = field(default_factory=list)
    threads: int = field(default_factory=config.num_threads)
    matmul_precision: str = ""
    offloaded: Offloaded | None = None

    @property
    def parameter_bytes(self) -> int:
        """Bytes of all variables that the graph uses; of trained ones that processes share, this one's part."""
        shared = self.trainable_bytes
        return sum(tensor.spec.nbytes for tensor in self.graph.parameters) - shared + shared // self.sharers

    @property
    def trainable_bytes(self) -> int:
        """Bytes of the variables that get a gradient."""
        return sum(tensor.spec.nbytes for tensor in self.gradient_order)

    @property
    def column_bytes(self) -> int:
        """Of these, the bytes of variables of which this process has some columns."""
        cut = set(self.graph.cut_variables)
        return sum(tensor.spec.nbytes for tensor in self.gradient_order if tensor.variable in cut)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the flat array of gradients; where they are applied one by one, within the arena, of those that wait
        for others'.

        Where processes keep parts of it, that of one, and the largest gradient whole.
        """
        if self.applies_gradients:
            return STAGED if self.sharers > 1 else 0
        largest = max((tensor.spec.nbytes for tensor in self.gradient_order), default=0)
        return largest + (self.trainable_bytes - largest) // self.gradient_parts

    @property
    def slot_bytes(self) -> int:
        """Bytes of what the optimizer keeps."""
        return int(self.slots * self.trainable_bytes) // self.sharers + self.state_bytes

    @property
    def transient_bytes(self) -> int:
        """The largest workspace that is allocated at the time of a call instead of being placed ahead."""
        return max((step.transient_bytes for step in self.steps if isinstance(step, PassStep)), default=0)

    @property
    def peak_bytes(self) -> int:
        """Predicted peak: variables, gradients, optimizer slots, the arena, and workspaces outside of it."""
        return self.fixed_bytes + self.arena_bytes + self.transient_bytes

    @property
    def bound_bytes(self) -> int:
        """Bytes of Python's objects that the steps are bound to, which come on top of the peak."""
        return _BOUND * len(self.steps)

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

    @property
    def fixed_bytes(self) -> int:
        """Bytes of variables, gradients and optimizer slots, whatever the batch is."""
        return self.parameter_bytes + self.gradient_bytes + self.slot_bytes

    def needs_most(self, limit: int) -> str:
        """In words, why the plan needs more than a limit: what the batch does not change, or the layer at the peak."""
        if self.fixed_bytes > limit or not self.steps:
            return f"variables, gradients and optimizer slots alone take {self.fixed_bytes / MIB:.1f} MiB"
        step = self.steps[self.peak_step()]
        return f"layer {step.node.scope or step.node.op.name!r} needs most, in its {step.kind}"

    def live_at(self, step: int) -> list[Storage]:
        """Storages in use at a step, the largest first."""
        alive = [storage for storage in self.storages if storage.lives_at(step)]
        return sorted(alive, key=lambda storage: -storage.nbytes)

    @property
    def recompute_seconds(self) -> float:
        """Estimated time of all that is computed again, on one core."""
        return sum(seconds_of(step.node, self.graph.elided) for step in self.steps if isinstance(step, RecomputeStep))

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

    @property
    def kept_bytes(self) -> int:
        """Bytes that forward leaves in the arena for backward."""
        start = self.backward_start
        return sum(s.nbytes for s in self.storages if any(first < start <= last for first, last in s.lives))

    @property
    def recomputed_bytes(self) -> int:
        """Bytes of what backward computes again."""
        views = (view for step in self.steps if isinstance(step, RecomputeStep) for view in step.y)
        return sum(view.spec.nbytes for view in views if view is not None)

    def parts(self) -> dict[str, int]:
        """What the predicted peak is the sum of, and the peak, in bytes."""
        return {
            "variables": self.parameter_bytes,
            "gradients": self.gradient_bytes,
            "optimizer slots": self.slot_bytes,
            "arena": self.arena_bytes,
            "workspaces at call time": self.transient_bytes,
            "predicted peak": self.peak_bytes,
        }

    def __repr__(self) -> str:
        parts = [f"{len(self.graph.nodes)} nodes", f"{len(self.steps)} steps", f"peak {self.peak_bytes / MIB:.1f} MiB"]
        parts += [f"{len(self.recomputed)} recomputed"] if self.recomputed else []
        parts += [] if self.offloaded is None else [f"{self.offloaded.scratch_bytes / MIB:.1f} MiB offloaded"]
        return f"<Plan {self.variant}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from pydtconv.graph.memory.plot import memory_html

        return memory_html(self)

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
        lines += [f"{name:>24}: {value / MIB:10.2f} MiB" for name, value in self.parts().items() if value]
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
