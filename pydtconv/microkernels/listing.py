"""The table of micro-kernels, native and BLIS's, and what is known of each: sizes, features, whether it is right."""

from __future__ import annotations

import difflib
import warnings
from dataclasses import dataclass

from pydtconv._ext import cpu, ukr
from pydtconv.dtypes import name_of
from pydtconv.microkernels import blis


@dataclass(frozen=True)
class MicroKernel:
    """A micro-kernel of the table.  C's tile is mr x nr; mc, kc and nc are the block sizes of a large product."""

    name: str
    dtype: str
    provider: str  # "native", "portable", "blis" (the PyPI package) or "system blis"
    mr: int
    nr: int
    mc: int
    kc: int
    nc: int
    features: tuple[str, ...]  # that it needs of the CPU
    reads_in_place: bool  # its broadcast operand may be a plain matrix
    usable: bool
    reason: str  # why it is not usable; "" where it is


#: dtypes that have a table of kernels
DTYPES = ("float32", "float64", "bfloat16")

_failed: dict[tuple[str, str], str] = {}
_passed: set[tuple[str, str]] = set()


def checked(dtype: object) -> str:
    """The name of a dtype that has a table; raises ValueError for any other."""
    name = name_of(dtype)
    if name not in DTYPES:
        raise ValueError(f"dtype: expected 'float32', 'float64' or 'bfloat16', got {name!r}")
    return name


def rows_of(dtype: str) -> list[tuple]:
    """The C library's table (`ukr.table`) with BLIS's kernels in it."""
    blis.register()
    return ukr.table(dtype)


def find(dtype: str, wanted: str) -> str | None:
    """The kernel called `wanted`, or the best of a family ("blis_haswell", "native"); None where only another
    dtype has such a one.  Raises ValueError for a name that none has."""
    order = sorted(DTYPES, key=lambda other: other != dtype)
    rows = {other: sorted(rows_of(other), key=lambda row: row[4]) for other in order}
    for other in order:
        for name in (row[0] for row in rows[other]):
            if name == wanted or name.startswith(wanted + "_"):
                return name if other == dtype else None
    names = sorted({row[0] for both in rows.values() for row in both})
    near = difflib.get_close_matches(wanted, names, 3, 0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"no micro-kernel is called {wanted!r}: expected one of {', '.join(names)}{hint}")


def available(dtype: str = "float32") -> list[MicroKernel]:
    """All kernels of a precision, best rank first, usable or not.  Runs the self-test of those this CPU can run."""
    dtype = checked(dtype)
    kernels = []
    rows = rows_of(dtype)
    for index in sorted(range(len(rows)), key=lambda i: rows[i][4]):
        name, mr, nr, bits, _, in_place, _ = rows[index]
        reason = verdict(dtype, index, name, bits)
        mc, kc, nc = ukr.sizes(dtype, index)
        features = tuple(feature for feature, bit in cpu.FEATURES.items() if bits & bit)
        kernels.append(
            MicroKernel(
                name,
                dtype,
                _provider(name),
                mr,
                nr,
                mc,
                kc,
                nc,
                features,
                in_place,
                not reason,
                reason,
            )
        )
    return kernels


def _provider(name: str) -> str:
    family = name.split("_")[0]
    return {"portable": "portable", "system": "system blis", "blis": "blis"}.get(family, "native")


def verdict(dtype: str, index: int, name: str, bits: int) -> str:
    """Why a kernel is not usable, or "": features first, then the self-test, which is run once."""
    missing = _missing(bits)
    if missing:
        return f"this CPU lacks {', '.join(missing)}"
    key = (dtype, name)
    if key not in _passed and key not in _failed:
        error = ukr.self_test(dtype, index)
        if error < 1:
            _passed.add(key)
        else:
            _failed[key] = f"wrong results in the self-test (error {error:.3g} times the tolerance)"
            warnings.warn(
                f"micro-kernel {name} ({dtype}) is not used: {_failed[key]}",
                RuntimeWarning,
                3,
            )
    return _failed.get(key, "")


def _missing(bits: int) -> list[str]:
    have = cpu.features()
    return [name for name, bit in cpu.FEATURES.items() if bits & bit and name not in have]
