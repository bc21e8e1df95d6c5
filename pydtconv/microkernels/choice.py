"""Micro-kernels: which there are, which one is in force, and how fast they are.

Kernels come from two providers.  The native ones are part of the C library (cext/ukr).  The assembly kernels of BLIS
are found inside the PyPI package `blis`: its extension module carries them as exported symbols, which are looked up by
name and entered into the C library's table.  Kernels are chosen by the features of the CPU and never by BLIS's own
dispatch, which takes CPUs that are younger than it for generic ones.

The choice is made when the first product is computed, per precision: the kernels this CPU can run are tried in the
order of a built-in ranking, and the first one that passes the self-test against the portable kernel is taken.  A
ranking and not a measurement, so that equal runs take equal kernels and give equal bits, on a busy machine too;
`pydtconv doctor` and `measure` show whether it is right on a machine.  `PYDTCONV_UKR=<name>` forces a kernel.
"""

from __future__ import annotations

import ctypes
import difflib
import functools
import importlib.util
import os
import re
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pydtconv._ext import cpu, ukr

# bits of cext/include/dtconv_cpu.h
_FEATURES = {"avx2": 1, "fma": 2, "avx512": 4, "neon": 8, "avx": 16, "sse3": 32}
# a BLIS that the library was built against goes first: whoever sets BLIS_ROOT wants it
_SYSTEM_RANK = 5
_ABI_BELOW_0_9, _ABI_FROM_0_9 = 1, 2


@dataclass(frozen=True)
class _BlisKernel:
    symbol: str
    mr: int
    nr: int
    row_preferred: bool
    features: tuple[str, ...]
    rank: int


# Sizes in BLIS's words.  Left out: knl (instructions that no other CPU has), bulldozer and piledriver (FMA4).
_BLIS: dict[bool, tuple[_BlisKernel, ...]] = {
    False: (
        _BlisKernel("bli_sgemm_skx_asm_32x12_l2", 32, 12, False, ("avx512",), 12),
        _BlisKernel("bli_sgemm_haswell_asm_6x16", 6, 16, True, ("avx2", "fma"), 28),
        _BlisKernel("bli_sgemm_haswell_asm_16x6", 16, 6, False, ("avx2", "fma"), 32),
        _BlisKernel("bli_sgemm_sandybridge_asm_8x8", 8, 8, False, ("avx",), 50),
        _BlisKernel("bli_sgemm_penryn_asm_8x4", 8, 4, False, ("sse3",), 60),
    ),
    True: (
        _BlisKernel("bli_dgemm_skx_asm_16x14", 16, 14, False, ("avx512",), 12),
        _BlisKernel("bli_dgemm_skx_asm_16x12_l2", 16, 12, False, ("avx512",), 14),
        _BlisKernel("bli_dgemm_haswell_asm_6x8", 6, 8, True, ("avx2", "fma"), 28),
        _BlisKernel("bli_dgemm_haswell_asm_8x6", 8, 6, False, ("avx2", "fma"), 32),
        _BlisKernel("bli_dgemm_sandybridge_asm_8x4", 8, 4, False, ("avx",), 50),
        _BlisKernel("bli_dgemm_penryn_asm_4x4", 4, 4, False, ("sse3",), 60),
    ),
}


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


_failed: dict[tuple[bool, str], str] = {}
_passed: set[tuple[bool, str]] = set()


def _double(dtype: object) -> bool:
    name = np.dtype(dtype).name  # type: ignore[call-overload]
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype: expected 'float32' or 'float64', got {name!r}")
    return bool(name == "float64")


def blis_library() -> Path | None:
    """The extension module of the PyPI package `blis` that carries BLIS, or None where it is not installed."""
    try:
        spec = importlib.util.find_spec("blis")
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(folder).glob("cy.*")):
            if path.suffix in (".so", ".pyd", ".dylib"):
                return path
    return None


def _abi(library: ctypes.CDLL) -> int:
    """How kernels of this BLIS are called: the signature changed with version 0.9."""
    try:
        version = library.bli_info_get_version_str
    except AttributeError:
        return _ABI_BELOW_0_9
    version.restype = ctypes.c_char_p
    found = re.match(rb"(\d+)\.(\d+)", version() or b"")
    return _ABI_FROM_0_9 if found and (int(found[1]), int(found[2])) >= (0, 9) else _ABI_BELOW_0_9


@functools.cache
def _register_blis() -> ctypes.CDLL | None:
    """Enters BLIS's kernels into the C library's tables, once; keeps the library loaded."""
    for double in (False, True):
        ukr.register_system(double, _SYSTEM_RANK)
    path = blis_library()
    if path is None:
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        warnings.warn(f"BLIS in {path} cannot be loaded ({error}); native micro-kernels are used", RuntimeWarning, 2)
        return None
    abi = _abi(library)
    for double, kernels in _BLIS.items():
        for kernel in kernels:
            try:
                address = ctypes.cast(getattr(library, kernel.symbol), ctypes.c_void_p).value
            except AttributeError:
                continue
            needs = sum(_FEATURES[feature] for feature in kernel.features)
            name = _name(kernel.symbol)
            ukr.register(double, name, address, abi, kernel.mr, kernel.nr, kernel.row_preferred, needs, kernel.rank)
    return library


def _name(symbol: str) -> str:
    """blis_haswell_6x16 of bli_sgemm_haswell_asm_6x16."""
    return "blis_" + symbol.split("gemm_")[1].replace("_asm", "").removesuffix("_l2")


def _provider(name: str) -> str:
    return {"portable": "portable", "native": "native", "system": "system blis"}.get(name.split("_")[0], "blis")


def _rows(double: bool) -> list[tuple]:
    _register_blis()
    return ukr.table(double)


def _missing(bits: int) -> list[str]:
    have = cpu.features()
    return [name for name, bit in _FEATURES.items() if bits & bit and name not in have]


def _verdict(double: bool, index: int, name: str, bits: int) -> str:
    """Why a kernel is not usable, or "": features first, then the self-test, which is run once."""
    missing = _missing(bits)
    if missing:
        return f"this CPU lacks {', '.join(missing)}"
    key = (double, name)
    if key not in _passed and key not in _failed:
        error = ukr.self_test(double, index)
        if error < 1:
            _passed.add(key)
        else:
            _failed[key] = f"wrong results in the self-test (error {error:.3g} times the tolerance)"
            warnings.warn(
                f"micro-kernel {name} ({'float64' if double else 'float32'}) is not used: {_failed[key]}",
                RuntimeWarning,
                3,
            )
    return _failed.get(key, "")


def available(dtype: str = "float32") -> list[MicroKernel]:
    """All kernels of a precision, best rank first, usable or not.  Runs the self-test of those this CPU can run."""
    double = _double(dtype)
    kernels = []
    rows = _rows(double)
    for index in sorted(range(len(rows)), key=lambda i: rows[i][4]):
        name, mr, nr, bits, _, in_place, _ = rows[index]
        reason = _verdict(double, index, name, bits)
        mc, kc, nc = ukr.sizes(double, index)
        features = tuple(feature for feature, bit in _FEATURES.items() if bits & bit)
        kernels.append(
            MicroKernel(
                name,
                "float64" if double else "float32",
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


def _find(double: bool, wanted: str) -> str | None:
    """The kernel called `wanted`, or the best of a family ("blis_haswell", "native"); None where only the other
    precision has such a one.  Raises ValueError for a name that neither has."""
    rows = {flag: sorted(_rows(flag), key=lambda row: row[4]) for flag in (double, not double)}
    for flag in (double, not double):
        for name in (row[0] for row in rows[flag]):
            if name == wanted or name.startswith(wanted + "_"):
                return name if flag == double else None
    names = sorted({row[0] for both in rows.values() for row in both})
    near = difflib.get_close_matches(wanted, names, 3, 0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"no micro-kernel is called {wanted!r}: expected one of {', '.join(names)}{hint}")


def _use(double: bool, name: str, who: str) -> None:
    """Puts a kernel in force.  Raises ValueError with the usable ones where it cannot be used."""
    rows = _rows(double)
    index = [row[0] for row in rows].index(name)
    reason = _verdict(double, index, name, rows[index][3])
    if reason:
        usable = [kernel.name for kernel in available("float64" if double else "float32") if kernel.usable]
        raise ValueError(f"{who}: micro-kernel {name} cannot be used: {reason}; usable are {', '.join(usable)}")
    ukr.select(double, index)


def _choose(double: bool) -> None:
    """Puts a kernel in force, called by the C library when it wants one for the first time."""
    forced = os.environ.get("PYDTCONV_UKR")
    if forced:
        try:
            name = _find(double, forced)
        except ValueError as error:
            raise ValueError(f"PYDTCONV_UKR: {error}") from None
        if name is not None:
            _use(double, name, "PYDTCONV_UKR")
            return
    rows = _rows(double)
    for index in sorted(range(len(rows)), key=lambda i: rows[i][4]):
        if not _verdict(double, index, rows[index][0], rows[index][3]):
            ukr.select(double, index)
            return
    raise RuntimeError("no micro-kernel passes its self-test on this machine")


def select(name: str | None, dtype: str = "float32") -> None:
    """Puts a kernel in force, by name or family ("blis_haswell"); None: the choice is made anew at the next use.

    Raises ValueError for a name that is unknown in this precision or a kernel that cannot be used here.
    """
    double = _double(dtype)
    if name is None:
        ukr.select(double, -1)
        return
    found = _find(double, name)
    if found is None:
        raise ValueError(
            f"select: {name} is no micro-kernel for {dtype}: "
            f"expected one of {', '.join(row[0] for row in _rows(double))}"
        )
    _use(double, found, "select")


def selected(dtype: str = "float32") -> MicroKernel:
    """The kernel in force; chooses it where that has not happened yet."""
    double = _double(dtype)
    index = ukr.current(double)
    if index < 0:
        _choose(double)
        index = ukr.current(double)
    name = ukr.table(double)[index][0]
    return next(kernel for kernel in available(dtype) if kernel.name == name)


def measure(name: str, dtype: str = "float32", seconds: float = 0.05) -> float:
    """GFLOPS of one kernel on one core, on panels that stay in cache: the best of some runs within `seconds`."""
    double = _double(dtype)
    rows = _rows(double)
    found = _find(double, name)
    if found is None:
        raise ValueError(f"measure: {name} is no micro-kernel for {dtype}")
    index = [row[0] for row in rows].index(found)
    _, mr, nr, bits, *_ = rows[index]
    reason = _verdict(double, index, found, bits)
    if reason:
        raise ValueError(f"measure: micro-kernel {found} cannot be used: {reason}")
    k = 256
    real = np.float64 if double else np.float32
    a, b, c = (_aligned(count, real) for count in ((mr + 8) * k, (nr + 8) * k, mr * nr + 64))
    repeat = ukr.repeat_d if double else ukr.repeat_s
    return _best_rate(lambda count: (repeat(index, count, k, a, b, c), 2.0 * count * mr * nr * k)[1], 20, seconds)


def _aligned(count: int, dtype: type) -> np.ndarray:
    """Zeros at the start of a cache line."""
    raw = np.zeros(count * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


def _best_rate(work: Callable[[int], float], count: int, seconds: float) -> float:
    """Best GFLOPS of `work(count)`, which returns the operations it did, run again and again for `seconds`."""
    best, end = 0.0, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        operations = work(count)
        stop = time.perf_counter()
        best = max(best, operations / (stop - start) * 1e-9)
        if stop - start < 1e-3:
            count *= 2
        elif stop > end:
            return best


def peak_gflops(dtype: str = "float32", threads: int = 1, seconds: float = 0.05) -> float:
    """The FMA peak of `threads` cores together, measured with multiply-adds in registers only."""
    double = _double(dtype)
    bits = sum(_FEATURES[feature] for feature in cpu.features() if feature in _FEATURES)

    def one(_: int) -> float:
        return _best_rate(lambda count: ukr.peak(double, bits, count), 1000, seconds)

    if threads == 1:
        return one(0)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(one, range(threads)))


ukr.set_chooser(_choose)
