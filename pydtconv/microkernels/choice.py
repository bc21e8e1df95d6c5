"""The choice of the active kernel: by rank and self-test, or by name."""

from __future__ import annotations

import os

from pydtconv._ext import ukr
from pydtconv.microkernels.listing import MicroKernel, available, checked, find, rows_of, verdict


def select(name: str | None, dtype: str = "float32") -> None:
    """Makes a kernel active, by name or family ("blis_haswell"); None: the choice is made anew at the next use.

    Raises ValueError for a name that is unknown in this precision or a kernel that cannot be used here.
    """
    dtype = checked(dtype)
    if name is None:
        ukr.select(dtype, -1)
        return
    found = find(dtype, name)
    if found is None:
        raise ValueError(
            f"select: {name} is no micro-kernel for {dtype}: "
            f"expected one of {', '.join(row[0] for row in rows_of(dtype))}"
        )
    _use(dtype, found, "select")


def selected(dtype: str = "float32") -> MicroKernel:
    """The active kernel; chooses it where that has not happened yet."""
    dtype = checked(dtype)
    index = ukr.current(dtype)
    if index < 0:
        _choose(dtype)
        index = ukr.current(dtype)
    name = ukr.table(dtype)[index][0]
    return next(kernel for kernel in available(dtype) if kernel.name == name)


def _use(dtype: str, name: str, who: str) -> None:
    """Makes a kernel active.  Raises ValueError with the usable ones where it cannot be used."""
    rows = rows_of(dtype)
    index = [row[0] for row in rows].index(name)
    reason = verdict(dtype, index, name, rows[index][3])
    if reason:
        usable = [kernel.name for kernel in available(dtype) if kernel.usable]
        raise ValueError(f"{who}: micro-kernel {name} cannot be used: {reason}; usable are {', '.join(usable)}")
    ukr.select(dtype, index)


def _choose(dtype: str) -> None:
    """Makes a kernel active, called by the C library when it wants one for the first time."""
    forced = os.environ.get("PYDTCONV_UKR")
    if forced:
        try:
            name = find(dtype, forced)
        except ValueError as error:
            raise ValueError(f"PYDTCONV_UKR: {error}") from None
        if name is not None:
            _use(dtype, name, "PYDTCONV_UKR")
            return
    rows = rows_of(dtype)
    for index in sorted(range(len(rows)), key=lambda i: rows[i][4]):
        if not verdict(dtype, index, rows[index][0], rows[index][3]):
            ukr.select(dtype, index)
            return
    raise RuntimeError("no micro-kernel passes its self-test on this machine")


ukr.set_chooser(_choose)
