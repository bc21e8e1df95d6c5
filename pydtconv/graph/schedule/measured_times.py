"""Seconds of steps that trainings on this machine have measured; see step_times.py for their names."""

from __future__ import annotations

from collections.abc import Sequence

from pydtconv.files.measurements import KeptFigures
from pydtconv.graph.schedule.asynchronous import StartStep, WaitStep
from pydtconv.graph.schedule.step_times import signature
from pydtconv.graph.schedule.steps import Step
from pydtconv.support.machine import cpu_kind

STEPS = KeptFigures("steps.json", "pydtconv times of steps")


def measured(threads: int) -> dict[str, float]:
    """Seconds by the signatures of steps, with so many threads."""
    head = _head(threads)
    return {name[len(head) :]: value for name, value in STEPS.all().items() if name.startswith(head) and value >= 0}


def note(steps: Sequence[Step], seconds: Sequence[float], threads: int) -> None:
    """Keeps the times of the steps of a plan; those of equal signatures are averaged."""
    found: dict[str, list[float]] = {}
    for step, value in zip(steps, seconds, strict=True):
        if not isinstance(step, (StartStep, WaitStep)):
            found.setdefault(signature(step), []).append(value)
    head = _head(threads)
    STEPS.add({head + name: sum(values) / len(values) for name, values in found.items()})


def _head(threads: int) -> str:
    return f"{cpu_kind()} | {threads} threads | "
