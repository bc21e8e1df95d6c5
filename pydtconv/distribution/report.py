"""Ranks, hosts, cores and threads, in lines, and what should be mended of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydtconv.distribution.gradients.shared_memory import FOLDER, NotSharedError, SeveralHostsError, shared_rows
from pydtconv.distribution.gradients.two_levels import two_levels
from pydtconv.distribution.mpi.channels import channels
from pydtconv.distribution.mpi.launch import World, library


@dataclass(frozen=True)
class Placement:
    """Where one rank runs."""

    rank: int
    host: str
    cores: frozenset[int]
    threads: int


def placements(world: World, threads: int) -> list[Placement]:
    """Of all ranks, which all call this with their numbers of threads."""
    every = world.comm.allgather(threads)
    return [Placement(rank, world.hosts[rank], world.cores[rank], every[rank]) for rank in range(world.size)]


def by_host(found: Sequence[Placement]) -> Iterator[tuple[str, list[Placement]]]:
    for host, group in groupby(sorted(found, key=lambda place: (place.host, place.rank)), lambda place: place.host):
        yield host, list(group)


def lines(world: World, found: Sequence[Placement]) -> Iterator[tuple[str, str]]:
    """(label, text): the number of ranks, then each host with its ranks as rank: threads on cores."""
    hosts = len(set(world.hosts))
    yield "ranks", f"{world.size} on {hosts} host{'s' * (hosts > 1)}, {library(world.mpi)}"
    for host, group in by_host(found):
        cores = len(frozenset().union(*(place.cores for place in group)))
        yield "", f"{host}: {cores} cores"
        for place in group:
            bound = "any" if len(place.cores) == cores else _ranges(place.cores)
            yield "", f"  rank {place.rank}: {place.threads} thread{'s' * (place.threads > 1)} on cores {bound}"


def problems(found: Sequence[Placement]) -> Iterator[str]:
    """What should be mended, one line each."""
    for host, group in by_host(found):
        cores = frozenset().union(*(place.cores for place in group))
        threads = sum(place.threads for place in group)
        if threads > len(cores):
            yield (
                f"{host}: {threads} threads of {len(group)} ranks share {len(cores)} cores: start fewer ranks there, "
                f"or set PYDTCONV_NUM_THREADS={max(len(cores) // len(group), 1)}"
            )
            continue
        for place in group:
            if place.threads > len(place.cores):
                yield (
                    f"{host}: rank {place.rank} has {place.threads} threads and is bound to {len(place.cores)} of "
                    f"{len(cores)} cores: bind it to more"
                )


def way_of_gradients(world: World) -> tuple[str, str | None]:
    """How the gradients of all ranks, which all call this, come together; and what should be mended of it, if anything.

    It tries with one number; a model's gradients take their bytes times the ranks.  Ranks of several hosts try with
    1 MiB, and take the time.
    """
    here = channels(world)
    try:
        if here.hosts.several:
            return str(two_levels(here)), None
        shared_rows(here.small, 1, "float32")
    except SeveralHostsError as reason:
        return f"sent as messages: {reason}", None
    except NotSharedError as reason:
        return f"sent as messages: {reason}", f"{reason}: gradients are sent as messages, which is slower on one host"
    free = shutil.disk_usage(FOLDER).free >> 20
    return f"in memory that all ranks see ({FOLDER}, {free} MiB free), as far as those of all ranks fit there", None


def _ranges(cores: frozenset[int]) -> str:
    """Numbers as 0-3,8."""
    parts: list[list[int]] = []
    for core in sorted(cores):
        if parts and core == parts[-1][1] + 1:
            parts[-1][1] = core
        else:
            parts.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
