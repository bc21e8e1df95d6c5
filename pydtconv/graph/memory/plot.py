"""A picture of memory over the steps of a plan."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol

from pydtconv.files.plotting import figure_class, save_figure
from pydtconv.graph.memory.storage import Storage
from pydtconv.support import notebook

MIB = 1 << 20
COLORS = {
    "input": "#9aa5b1",
    "activation": "#3a7ca5",
    "recomputed": "#8d6cab",
    "saved": "#81b29a",
    "gradient": "#e07a5f",
    "workspace": "#f2cc8f",
}


class Placed(Protocol):
    """A plan whose storages have their places; all sizes are in bytes."""

    steps: Any
    storages: list[Storage]
    arena_bytes: int
    backward_start: int

    @property
    def fixed_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def offloaded(self) -> Any: ...
    def peak_step(self) -> int: ...
    def live_at(self, step: int) -> Sequence[Storage]: ...


def plot_memory(plan: Placed, path: Path) -> Path:
    """Two panels: bytes in use over the steps by kind; and each storage as a box (step x offset in the arena).

    A plan with offload has a third one: the predicted time lines of computing, writes and reads.
    """
    new_figure = figure_class("plan.plot")
    from matplotlib.patches import Patch, Rectangle

    count = max(len(plan.steps), 1)
    extra = plan.offloaded is not None
    figure = new_figure(figsize=(11, 10 if extra else 8), layout="constrained")
    grid = figure.add_gridspec(3 if extra else 2, 1, height_ratios=[4, 4, 1.4] if extra else [1, 1])
    over_time = figure.add_subplot(grid[0])
    boxes = figure.add_subplot(grid[1], sharex=over_time)
    if extra:
        _draw_time_lines(figure.add_subplot(grid[2]), plan.offloaded)

    bottoms = [0.0] * count
    for color, sizes in _mib_by_kind(plan).values():
        tops = [low + size for low, size in zip(bottoms, sizes, strict=True)]
        over_time.fill_between(range(count), bottoms, tops, color=color, step="mid", linewidth=0)
        bottoms = tops
    peak = plan.peak_step()
    over_time.axhline(plan.arena_bytes / MIB, color="#333333", linewidth=0.8, linestyle=":")
    over_time.axvline(peak, color="#333333", linewidth=0.8, linestyle="--")
    over_time.set_title(
        f"Memory over one step: arena {plan.arena_bytes / MIB:.1f} MiB, variables with gradients and slots "
        f"{plan.fixed_bytes / MIB:.1f} MiB, predicted peak {plan.peak_bytes / MIB:.1f} MiB",
        fontsize=10,
    )
    lines = [f"peak at {plan.steps[peak].node.name}:" if plan.steps else "nothing runs"]
    lines += [f"{storage.nbytes / MIB:8.2f} MiB  {storage.name}" for storage in plan.live_at(peak)[:8]]
    over_time.text(
        0.01, 0.97, "\n".join(lines), transform=over_time.transAxes, va="top", family="monospace", fontsize=7,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none"},
    )  # fmt: skip
    over_time.set_ylabel("MiB in use")
    handles = [Patch(color=color, label=kind) for kind, color in COLORS.items()]
    over_time.legend(handles=handles, loc="upper right", fontsize=8)

    for storage in plan.storages:
        for first, last in storage.lives:
            corner = (first - 0.5, storage.offset / MIB)
            width = min(last, count) - first + 1
            box = Rectangle(corner, width, storage.nbytes / MIB, facecolor=COLORS[storage.kind])
            box.set(edgecolor="white", linewidth=0.2)
            boxes.add_patch(box)
    boxes.axvline(peak, color="#333333", linewidth=0.8, linestyle="--")
    boxes.set_xlim(-0.5, count)
    boxes.set_ylim(0, max(plan.arena_bytes / MIB, 1e-6))
    boxes.set_xlabel(f"step (backward starts at {plan.backward_start})")
    boxes.set_ylabel("offset in the arena, MiB")
    return save_figure(figure, path, 130)


def _mib_by_kind(plan: Placed) -> dict[str, tuple[str, list[float]]]:
    """For each kind of storage its color, and what is in use at each step."""
    count = max(len(plan.steps), 1)
    found = {kind: [0] * (count + 2) for kind in COLORS}
    for storage in plan.storages:
        for first, last in storage.lives:
            found[storage.kind][first] += storage.nbytes
            found[storage.kind][min(last + 1, count)] -= storage.nbytes
    totals = {kind: itertools.accumulate(changes[:count]) for kind, changes in found.items()}
    return {kind: (color, [total / MIB for total in totals[kind]]) for kind, color in COLORS.items()}


def memory_html(plan: Any) -> str:
    """A plan for a notebook: what is in use over the steps, what is kept, recomputed and offloaded, and its table."""
    marks = {"peak": plan.peak_step(), "backward": plan.backward_start} if plan.backward_start else {}
    rows = {name: f"{value / MIB:.1f} MiB" for name, value in plan.parts().items() if value}
    rows["kept for backward"] = f"{plan.kept_bytes / MIB:.1f} MiB"
    rows["recomputed"] = f"{plan.recomputed_bytes / MIB:.1f} MiB of {len(plan.recomputed)} nodes"
    if plan.offloaded is not None:
        rows["offloaded"] = f"{plan.offloaded.scratch_bytes / MIB:.1f} MiB"
    if plan.steps:
        rows["peak at"] = plan.steps[plan.peak_step()].node.name
    picture = notebook.areas(_mib_by_kind(plan), marks)
    return f"<b>{escape(repr(plan)[1:-1])}</b>{picture}{notebook.table(rows)}{notebook.details('nodes', str(plan))}"


def _draw_time_lines(axes: Any, offloaded: Any) -> None:
    """Computing, writes and reads over the predicted seconds of a step."""
    starts = [*offloaded.starts, offloaded.seconds]
    computing = [(1e3 * a, 1e3 * (b - a)) for a, b in itertools.pairwise(starts)]
    turn = next((i for i, start in enumerate(starts) if start >= offloaded.backward), len(starts))
    axes.broken_barh(computing[:turn], (2.1, 0.8), color=COLORS["activation"])
    axes.broken_barh(computing[turn:], (2.1, 0.8), color=COLORS["gradient"])
    for row, number, color in ((1, 2, COLORS["workspace"]), (0, 3, COLORS["saved"])):
        spans = [each[number] for each in offloaded.moved]
        axes.broken_barh([(1e3 * a, 1e3 * (b - a)) for a, b in spans], (row + 0.1, 0.8), color=color, edgecolor="white")
    axes.set_yticks([2.5, 1.5, 0.5], ["compute", "writes", "reads"])
    axes.set_xlim(0, 1e3 * offloaded.seconds)
    axes.set_xlabel(
        f"predicted ms; {offloaded.scratch_bytes / MIB:.1f} MiB offloaded, {1e3 * offloaded.waited:.1f} ms of waiting"
    )
