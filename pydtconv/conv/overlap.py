"""Convolution of signals and images of any length with filters of any length: `convolve` and `correlate`.

The meaning is that of scipy.signal.convolve and correlate over the filter's axes: a filter of one axis works along the
last axis of the signals, one of two axes along the last two; axes before are a batch.

    y = overlap.convolve(signal, taps, mode="same")

Methods: "overlap_discard" cuts the results into blocks, each from a window of the signal, and windows overlap;
"overlap_add" cuts the signal into blocks, whose results overlap and are added; "parts" cuts the filter, too (parts.py);
"direct" transforms nothing.  Each has blocks of one and of two axes, with and without transforms.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pydtconv import config, fft
from pydtconv._ext import fft as ext
from pydtconv.conv import overlap_blocks
from pydtconv.conv.overlap_blocks import Blocks, Pair, Problem

__all__ = ["Work", "convolve", "correlate", "work"]

METHODS = ("auto", "overlap_add", "overlap_discard", "parts", "direct")
MODES, DOMAINS = ("full", "same", "valid"), ("auto", "spectral", "spatial")
_REALS = ("float32", "float64")
_COUNTS = 5
_NUMBERS = {"overlap_discard": 0, "overlap_add": 1, "parts": 2}


class Work(NamedTuple):
    """What a convolution did, as its blocks counted it.

    blocks: their sizes.  work_groups: blocks that work on their own.  reads, writes: elements of memory that all blocks
    share, with values of transforms, and with results that are added to.  local_memory: bytes of a block's own memory.
    efficiency: results that are kept, as a share of those that blocks computed.
    """

    blocks: Blocks
    work_groups: int
    reads: int
    writes: int
    local_memory: int
    efficiency: float


class Plan(NamedTuple):
    """A convolution whose shapes and options are known; complex arrays are convolved as real ones."""

    overlap: Any
    blocks: Blocks
    shape: tuple[int, ...]
    dtype: np.dtype
    real: np.dtype


def convolve(
    a: np.ndarray,
    b: np.ndarray,
    mode: str = "full",
    method: str = "auto",
    domain: str = "auto",
    block: Any = None,
    *,
    steps: int | None = None,
    private: bool = False,
    slice_start: Any = None,
    slice_end: Any = None,
) -> np.ndarray:
    """The convolution of a (..., n) with b (m,), or of a (..., h, w) with b (kh, kw).

    mode: "full", all results; "same", the middle ones, as many as a has; "valid", those without zeros at the ends.
    method: see the module; "auto" takes what is expected to be the fastest.  domain: "spectral" multiplies blocks by
    transforms, "spatial" without; "auto": as is expected to be faster.  block: results ("overlap_discard") or elements
    of a ("overlap_add") of a block; of "parts" a pair: elements of a's and of b's blocks, of which one divides the
    other; of two axes, each is an integer or a pair; None: chosen.
    steps: K of "overlap_add": blocks 0, K, 2 K, ... are added at a time, then 1, K + 1, ...; blocks of a step do not
    meet.  None: the least K, 2 for chosen blocks.  private: all steps ("parts": divisions) at a time, each adds to
    results of its own, and these are summed in the end.
    slice_start, slice_end: the first of the mode's results that is wanted, and the first that is not; of two axes
    pairs.  Blocks that do not reach them are not computed.
    With `block`, bits do not depend on the number of threads; blocks that are chosen may.  Values that are not finite
    spoil all results of the blocks that they are in; of a, but for "direct".
    Raises ValueError or TypeError naming the argument.
    """
    return _convolved(None, a, b, mode, method, domain, block, steps, private, slice_start, slice_end)[1]


def correlate(a: np.ndarray, b: np.ndarray, *args: Any, **options: Any) -> np.ndarray:
    """The correlation of a with b: the convolution with b turned round and conjugated; further arguments as there.

    Where b is longer than a, "valid" gives SciPy's results, too.
    """
    if not isinstance(b, np.ndarray):
        raise TypeError(f"b: expected a numpy.ndarray, got {type(b).__name__}")
    return convolve(a, np.flip(b).conj(), *args, **options)


def work(a: np.ndarray, b: np.ndarray, *args: Any, **options: Any) -> Work:
    """What the convolution of real a with b does; arguments are those of `convolve`."""
    counts = np.empty(_COUNTS, np.int64)
    plan, y = _convolved(counts, a, b, *args, **options)
    if plan.dtype.kind == "c":
        raise TypeError(f"work: expected real arrays, got {a.dtype} and {b.dtype}")
    groups, reads, writes, points, local = map(int, counts)
    return Work(plan.blocks, groups, reads, writes, local * y.itemsize, y.size / points)


def _convolved(
    counts: np.ndarray | None,
    a: np.ndarray,
    b: np.ndarray,
    mode: str = "full",
    method: str = "auto",
    domain: str = "auto",
    *options: Any,
    **named: Any,
) -> tuple[Plan, np.ndarray]:
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{name}: expected a numpy.ndarray, got {type(value).__name__}")
    given = (config.num_threads(), a.shape, b.shape, a.dtype, b.dtype, mode, method, domain)
    try:
        plan = planned(*given, *options, **named)
    except TypeError:  # lists are no keys
        plan = planned(*given, *map(_frozen, options), **{name: _frozen(option) for name, option in named.items()})
    if plan.dtype.kind == "c":
        return plan, _of_reals(a, b, plan)
    return plan, _run(plan, a, b, np.empty(plan.shape, plan.dtype), counts)


def _run(plan: Plan, a: np.ndarray, b: np.ndarray, y: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    overlap = plan.overlap
    status = overlap.run(
        np.ascontiguousarray(a, plan.real).reshape(-1),
        np.ascontiguousarray(b, plan.real).reshape(-1),
        y.reshape(-1),
        fft.kept_workspace(overlap.workspace_bytes),
        counts,
    )
    if status:
        raise RuntimeError(f"convolve: the library's status is {status}")
    return y


def _of_reals(a: np.ndarray, b: np.ndarray, plan: Plan) -> np.ndarray:
    """Complex arrays as real and imaginary parts."""
    y, some = np.zeros(plan.shape, plan.dtype), np.empty(plan.shape, plan.real)
    for of_a in ("real", "imag")[: 1 + np.iscomplexobj(a)]:
        for of_b in ("real", "imag")[: 1 + np.iscomplexobj(b)]:
            _run(plan, getattr(a, of_a), getattr(b, of_b), some)
            target = y.real if of_a == of_b else y.imag
            (np.subtract if of_a == of_b == "imag" else np.add)(target, some, out=target)
    return y


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


@lru_cache(maxsize=64, typed=True)
def planned(
    threads: int,
    a: tuple[int, ...],
    b: tuple[int, ...],
    a_dtype: np.dtype,
    b_dtype: np.dtype,
    mode: str,
    method: str,
    domain: str,
    block: Any = None,
    steps: int | None = None,
    private: bool = False,
    slice_start: Any = None,
    slice_end: Any = None,
) -> Plan:
    """All that depends on shapes and options.  Raises ValueError or TypeError naming the argument."""
    for name, shape, dtype in (("a", a, a_dtype), ("b", b, b_dtype)):
        if dtype.name not in (*_REALS, "complex64", "complex128"):
            raise TypeError(f"{name}: expected float32, float64, complex64 or complex128, got {dtype}")
        if 0 in shape:
            raise ValueError(f"{name}: expected an array that is not empty, got shape {shape}")
    if len(b) not in (1, 2):
        raise ValueError(f"b: expected one or two axes, got shape {b}")
    if len(a) < len(b):
        raise ValueError(f"a: expected at least the {len(b)} axes of b, got shape {a}")
    for name, option, known in (("mode", mode, MODES), ("method", method, METHODS), ("domain", domain, DOMAINS)):
        if option not in known:
            raise ValueError(f"{name}: expected one of {', '.join(known)}, got {option!r}")
    dtype = np.result_type(a_dtype, b_dtype)
    real = np.empty(0, dtype).real.dtype
    batch, axes = a[: len(a) - len(b)], len(b)
    of_mode = [_of_mode(mode, n, m) for n, m in zip(a[-axes:], b, strict=True)]
    wanted = _sliced(of_mode, slice_start, slice_end)
    start, stop = ([first for first, _ in wanted], [last for _, last in wanted])
    p = Problem(_two(a[-axes:]), _two(b), _two((*start,), 0), _two((*stop,)), prod(batch), real.itemsize, threads)
    blocks = _blocks(p, axes, method, domain, block, steps, private)
    sizes = (*p.a, *p.b, *p.start, *p.stop, *blocks.block, *blocks.part, *blocks.steps, *blocks.points)
    number = _NUMBERS[blocks.method]
    used = overlap_blocks.threads_of(p, blocks)
    overlap = ext.Overlap(real.name, p.signals, sizes, number, private, used)
    return Plan(overlap, blocks, (*batch, *(last - first for first, last in wanted)), dtype, real)


def _two(sizes: tuple[int, ...], of_rows: int = 1) -> Pair:
    return (sizes[0], sizes[1]) if len(sizes) == 2 else (of_rows, sizes[0])


def _of_mode(mode: str, n: int, m: int) -> tuple[int, int]:
    """First and last + 1 of the n + m - 1 results."""
    if mode == "full":
        return 0, n + m - 1
    if mode == "same":
        return (m - 1) // 2, (m - 1) // 2 + n
    return min(n, m) - 1, max(n, m)


def _integers(name: str, value: Any, axes: int, least: int) -> tuple[int, ...]:
    """An integer for each axis: of two axes a pair, or one for both.  Raises ValueError."""
    wanted = "an integer" if axes == 1 else "an integer or a pair of integers"
    values = value if isinstance(value, tuple) and axes == 2 else (value,) * axes
    if len(values) != axes or any(isinstance(v, bool | tuple) or not hasattr(v, "__index__") for v in values):
        raise ValueError(f"{name}: expected {wanted} for a filter of {axes} axes, got {value!r}")
    found = tuple(map(operator.index, values))
    if min(found) < least:
        raise ValueError(f"{name}: expected {wanted} of {least} or more, got {value!r}")
    return found


def _sliced(of_mode: list[tuple[int, int]], slice_start: Any, slice_end: Any) -> list[tuple[int, int]]:
    """The slice of a mode's results, as results of the full convolution."""
    axes, counts = len(of_mode), tuple(stop - start for start, stop in of_mode)
    first = _integers("slice_start", 0 if slice_start is None else slice_start, axes, 0)
    last = counts if slice_end is None else _integers("slice_end", slice_end, axes, 1)
    if any(not low < high <= count for low, high, count in zip(first, last, counts, strict=True)):
        raise ValueError(f"slice_start, slice_end: expected a slice of the {counts} results, got {first} to {last}")
    return [(start + low, start + high) for (start, _), low, high in zip(of_mode, first, last, strict=True)]


def _blocks(p: Problem, axes: int, method: str, domain: str, block: Any, steps: Any, private: bool) -> Blocks:
    if steps is not None:
        steps = _integers("steps", steps, 1, 1)[0]
    for name, value, known in (
        ("steps", steps, ("overlap_add",)),
        ("private", private or None, ("overlap_add", "parts")),
    ):
        if value is not None and method not in known:
            raise ValueError(f"{name}: expected method {' or '.join(map(repr, known))}, got {method!r}")
    if block is None:
        return overlap_blocks.choose(p, method, domain, steps)
    if method == "direct":
        raise ValueError(f"block: expected None for 'direct', which has no blocks, got {block!r}")
    if method == "parts" and not (isinstance(block, tuple) and len(block) == 2):
        raise ValueError(f"block: expected a pair of lengths for 'parts', of a's and b's blocks, got {block!r}")
    both = block if method == "parts" else (block, 1)
    of_a, of_b = (_two(_integers("block", sizes, axes, 1)) for sizes in both)
    if method == "parts" and any(max(i, j) % min(i, j) for i, j in zip(of_a, of_b, strict=True)):
        raise ValueError(f"block: expected lengths of which one divides the other, got {block}")
    method = "overlap_discard" if method == "auto" else method
    return overlap_blocks.with_block(p, method, domain, of_a, of_b, steps)
