"""A mesh as `pydtconv doctor` shows it: who shares images with whom, how fast halos travel, what should be mended."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Mapping

import numpy as np

from pydtconv.distribution.mpi.launch import World
from pydtconv.graph.spatial.partition import SPATIAL, Partition

#: bytes of a halo that is sent to try: a row of 256 pixels of 64 channels
HALO = 256 * 64 * 4
_TRIES = 20


def lines(world: World, mesh: Mapping[str, int], measure: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """(label, text) of a mesh over all ranks, which all call this, and what should be mended of it."""
    told = ",".join(f"{name}={extent}" for name, extent in mesh.items())
    if math.prod(mesh.values()) != world.size:
        return [], [f"--mesh {told}: expected mpiexec -n {math.prod(mesh.values())}, got {world.size} processes"]
    every = [Partition(tuple(mesh), tuple(mesh.values()), tuple(range(world.size)), rank) for rank in range(world.size)]
    found = [("mesh", told)]
    for part in every:
        place = ", ".join(f"{name} {part.coordinate(name)}" for name in mesh)
        near = [f"rank {other} ({name})" for name, other in neighbours(part)]
        found.append(("", f"  rank {part.rank}: {place}; halos with {', '.join(near) or 'none'}"))
    if measure and every[0].cut:
        seconds = max(world.comm.allgather(_measured(world, every[world.rank])))
        text = f"{HALO >> 10} KiB with each neighbour at the same time: {1e6 * seconds:.0f} us, the slowest rank's"
        found.append(("halos", text))
    return found, list(_problems(world, every))


def neighbours(part: Partition) -> Iterator[tuple[str, int]]:
    """(axis, rank) of those that have the parts of images beside this one's."""
    here = {name: part.coordinate(name) for name in part.names}
    for name in part.cut:
        for other in part.group:
            there = {axis: part.coordinate(axis, other) for axis in part.names}
            if abs(there[name] - here[name]) == 1 and all(there[axis] == here[axis] for axis in here if axis != name):
                yield name, other


def _measured(world: World, part: Partition) -> float:
    """The median seconds in which this process and its neighbours send each other a halo."""
    others = [other for _, other in neighbours(part)]
    out, into = np.zeros(HALO, np.uint8), np.zeros((max(len(others), 1), HALO), np.uint8)
    times = []
    for _ in range(_TRIES):
        world.comm.Barrier()
        start = time.perf_counter()
        requests = [world.comm.Irecv(into[i], other) for i, other in enumerate(others)]
        requests += [world.comm.Isend(out, other) for other in others]
        world.mpi.Request.Waitall(requests)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _problems(world: World, every: list[Partition]) -> Iterator[str]:
    """Halos that go from host to host where they need not."""
    groups = {part.group for part in every}
    hosts = [{world.hosts[rank] for rank in group} for group in groups]
    fits = len(every[0].group) <= min(len(world.neighbours(rank)) for rank in range(world.size))
    if fits and max(map(len, hosts)) > 1 and len(groups) > 1:
        best = ",".join(f"{name}={every[0].extent(name)}" for name in ("batch", *SPATIAL) if name in every[0].names)
        yield f"--mesh {every[0]}: ranks that share images are on several hosts: name 'batch' first, as in {best}"
