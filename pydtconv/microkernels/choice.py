"""The choice of the kernel in force: by rank and self-test, or by name."""

from __future__ import annotations

import os

from pydtconv._ext import ukr
from pydtconv.microkernels.table import MicroKernel, available, find, is_double, rows_of, verdict


def select(name: str | None, dtype: str = "float32") -> None:
    """Puts a kernel in force, by name or family ("blis_haswell"); None: the choice is made anew at the next use.

    Raises ValueError for a name that is unknown in this precision or a kernel that cannot be used here.
    """
    double = is_double(dtype)
    if name is None:
        ukr.select(double, -1)
        return
    found = find(double, name)
    if found is None:
        raise ValueError(
            f"select: {name} is no micro-kernel for {dtype}: "
            f"expected one of {', '.join(row[0] for row in rows_of(double))}"
        )
    _use(double, found, "select")


def selected(dtype: str = "float32") -> MicroKernel:
    """The kernel in force; chooses it where that has not happened yet."""
    double = is_double(dtype)
    index = ukr.current(double)
    if index < 0:
        _choose(double)
        index = ukr.current(double)
    name = ukr.table(double)[index][0]
    return next(kernel for kernel in available(dtype) if kernel.name == name)


def _use(double: bool, name: str, who: str) -> None:
    """Puts a kernel in force.  Raises ValueError with the usable ones where it cannot be used."""
    rows = rows_of(double)
    index = [row[0] for row in rows].index(name)
    reason = verdict(double, index, name, rows[index][3])
    if reason:
        usable = [kernel.name for kernel in available("float64" if double else "float32") if kernel.usable]
        raise ValueError(f"{who}: micro-kernel {name} cannot be used: {reason}; usable are {', '.join(usable)}")
    ukr.select(double, index)


def _choose(double: bool) -> None:
    """Puts a kernel in force, called by the C library when it wants one for the first time."""
    forced = os.environ.get("PYDTCONV_UKR")
    if forced:
        try:
            name = find(double, forced)
        except ValueError as error:
            raise ValueError(f"PYDTCONV_UKR: {error}") from None
        if name is not None:
            _use(double, name, "PYDTCONV_UKR")
            return
    rows = rows_of(double)
    for index in sorted(range(len(rows)), key=lambda i: rows[i][4]):
        if not verdict(double, index, rows[index][0], rows[index][3]):
            ukr.select(double, index)
            return
    raise RuntimeError("no micro-kernel passes its self-test on this machine")


ukr.set_chooser(_choose)
