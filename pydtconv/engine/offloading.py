"""Offload of a training step's tensors: what `fit` and `plan` are told, and what trainings measure.

On a CPU they go to a folder; on a device with memory of its own to HOST, pinned memory of the host.
"""

from __future__ import annotations

import os
from typing import Any

from pydtconv import config, devices, replica
from pydtconv.devices import pinned
from pydtconv.devices.accelerator import Accelerator
from pydtconv.devices.pinned import HOST
from pydtconv.graph import Disk, Memory, MemoryLimitError, Offload, Plan, build_plan, disk_speed, measured_times
from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.runtime.scratch_file import ScratchFile

#: before a folder: all that may leave leaves layer by layer, without a schedule
LAYERWISE = "layerwise:"


def folder_of(offload: Any, memory_limit: int | None) -> str | None:
    """The folder of `fit`'s argument, behind LAYERWISE where it is there, or HOST.

    Raises ValueError for what is none, and without a limit.
    """
    if offload is None:
        return None
    if config.device() != "cpu":
        if not isinstance(offload, str) or offload != HOST:
            raise ValueError(f"offload: expected {HOST!r}, its pinned memory, on {config.device()}, got {offload!r}")
        if memory_limit is None:
            raise ValueError(f"offload: expected memory_limit too, which says what must leave; got {offload!r} alone")
        return HOST
    if isinstance(offload, bool) or not isinstance(offload, (str, os.PathLike)) or not os.fspath(offload):
        raise ValueError(f"offload: expected a folder, got {offload!r}")
    if memory_limit is None:
        raise ValueError(f"offload: expected memory_limit too, which says what must leave; got {offload!r} alone")
    before, path = _parts(os.fspath(offload))
    if not path or not os.path.isdir(path):
        raise ValueError(f"offload: expected a folder that is there, got {os.fspath(offload)!r}")
    return before + os.path.abspath(path)


def _parts(folder: str) -> tuple[str, str]:
    """LAYERWISE or nothing, and the folder."""
    path = folder.removeprefix(LAYERWISE)
    return folder[: len(folder) - len(path)], path


def of_training(folder: str | None, before: Plan | None = None) -> Offload | None:
    """What a training plan is made with; processes that train together share the disk.

    before: the plan in whose place it comes, whose algorithms it keeps, so that results have the same bits.
    """
    if folder is None:
        return None
    like = None if before is None else before.graph.options
    if folder == HOST:
        return Offload(_pinned(), folder, like)
    layerwise, path = _parts(folder)
    disk = disk_speed.disk_of(path)
    share = replica.current().size
    rates = Disk(disk.write / share, disk.read / share, disk.together, disk.latency)
    return Offload(rates, path, like, layerwise=bool(layerwise))


def of_plan(offload: Any, memory_limit: int | None) -> Offload | None:
    """The same for a plan that does not run: True stands for a disk of a usual speed."""
    if offload is None or offload is False:
        return None
    if offload is not True:
        return of_training(folder_of(offload, memory_limit))
    if memory_limit is None:
        raise ValueError("offload: expected memory_limit too, which says what must leave; got True alone")
    return Offload(Disk() if config.device() == "cpu" else _pinned())


def _pinned() -> Disk:
    """Pinned memory as a disk: both directions at once, as fast as was measured once on this kind of device."""
    device = devices.get(config.device())
    assert isinstance(device, Accelerator)
    write = read = device.rates().copied
    if device.measures_copies:
        keys = [f"{device.model} {os.uname().nodename} pinned {what}" for what in ("write", "read")]
        if not set(keys) <= set(disk_speed.DISKS.all()):
            disk_speed.DISKS.add(dict(zip(keys, pinned.speeds(device), strict=True)))
        write, read = (disk_speed.DISKS.all()[key] for key in keys)
    return Disk(write, read, 1.0, 2e-5)


def kept(step: Any, planned_anew: set[Any], key: Any) -> Any | None:
    """The step; or None where it is to be planned anew, once, with the times that its first runs have measured.

    Where several processes train one model all keep their plans.
    """
    seconds = step.executor.measured
    if seconds is None or key in planned_anew or replica.current().size > 1:
        return step
    planned_anew.add(key)
    plan, file = step.executor.plan, step.executor.memory.scratch_file
    measured_times.note(plan.steps, seconds, plan.threads)
    if isinstance(file, ScratchFile):
        disk_speed.note(file)
    return None


def planned(graph: Graph, folder: str | None, before: Plan | None, **options: Any) -> Plan:
    """The plan of a step; with offload to a folder, where there is one.

    before: the plan in whose place it comes.  It stays where the other would have other algorithms, whose results are
    other bits, or where none with these is found within the limit.
    """
    try:
        plan = build_plan(graph, offload=of_training(folder, before), **options)
    except MemoryLimitError:
        if before is None:
            raise
        return before
    return plan if before is None or _same_algorithms(before, plan) else before


def _same_algorithms(one: Plan, other: Plan) -> bool:
    """Whether two plans of a model compute each convolution by the same algorithms."""
    return list(one.algorithms.values()) == list(other.algorithms.values())


def release(memory: Memory) -> None:
    """Gives the scratch file's space back, and keeps what was seen of the disk."""
    if memory.scratch_file is not None:
        try:
            if isinstance(memory.scratch_file, ScratchFile):
                disk_speed.note(memory.scratch_file)
        finally:
            memory.release_scratch_file()
