"""Several calls of the C library as one pass, with the workspace that was placed for them or one of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pydtconv.conv.bound_passes import run, scratch
from pydtconv.kernels.base import Call, Pass, in_parts


def in_order(calls: Mapping[str, Callable[..., int]], p: Pass, need: int) -> Call:
    """One call of several parts that share p's workspace; where none was placed, each call has its own."""
    if need == 0 or (p.workspace is not None and p.workspace.size >= need):
        return in_parts({name: partial(run, call, p.workspace) for name, call in calls.items()}, p.run)

    def transient() -> None:
        mine = scratch(need)
        in_parts({name: partial(run, call, mine) for name, call in calls.items()}, p.run)()

    return transient
