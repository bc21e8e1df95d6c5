"""The assembly kernels of BLIS, as the PyPI package `blis` carries them: exported symbols of its extension module."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from pydtconv._ext import cpu, ukr

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
_BLIS: dict[str, tuple[_BlisKernel, ...]] = {
    "float32": (
        _BlisKernel("bli_sgemm_skx_asm_32x12_l2", 32, 12, False, ("avx512",), 12),
        _BlisKernel("bli_sgemm_haswell_asm_6x16", 6, 16, True, ("avx2", "fma"), 28),
        _BlisKernel("bli_sgemm_haswell_asm_16x6", 16, 6, False, ("avx2", "fma"), 32),
        _BlisKernel("bli_sgemm_sandybridge_asm_8x8", 8, 8, False, ("avx",), 50),
        _BlisKernel("bli_sgemm_penryn_asm_8x4", 8, 4, False, ("sse3",), 60),
    ),
    "float64": (
        _BlisKernel("bli_dgemm_skx_asm_16x14", 16, 14, False, ("avx512",), 12),
        _BlisKernel("bli_dgemm_skx_asm_16x12_l2", 16, 12, False, ("avx512",), 14),
        _BlisKernel("bli_dgemm_haswell_asm_6x8", 6, 8, True, ("avx2", "fma"), 28),
        _BlisKernel("bli_dgemm_haswell_asm_8x6", 8, 6, False, ("avx2", "fma"), 32),
        _BlisKernel("bli_dgemm_sandybridge_asm_8x4", 8, 4, False, ("avx",), 50),
        _BlisKernel("bli_dgemm_penryn_asm_4x4", 4, 4, False, ("sse3",), 60),
    ),
}


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
def register() -> ctypes.CDLL | None:
    """Enters BLIS's kernels into the C library's tables, once; keeps the library loaded."""
    for dtype in _BLIS:
        ukr.register_system(dtype, _SYSTEM_RANK)
    path = blis_library()
    if path is None:
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        warnings.warn(f"BLIS in {path} cannot be loaded ({error}); native micro-kernels are used", RuntimeWarning, 2)
        return None
    abi = _abi(library)
    for dtype, kernels in _BLIS.items():
        for kernel in kernels:
            try:
                address = ctypes.cast(getattr(library, kernel.symbol), ctypes.c_void_p).value
            except AttributeError:
                continue
            needs = sum(cpu.FEATURES[feature] for feature in kernel.features)
            name = _name(kernel.symbol)
            ukr.register(dtype, name, address, abi, kernel.mr, kernel.nr, kernel.row_preferred, needs, kernel.rank)
    return library


def _name(symbol: str) -> str:
    """blis_haswell_6x16 of bli_sgemm_haswell_asm_6x16."""
    return "blis_" + symbol.split("gemm_")[1].replace("_asm", "").removesuffix("_l2")
