"""Transforms, long signals, convolutions of one and three axes, bfloat16: against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import config, conv, dtypes, fft, gemm, microkernels
from pydtconv.conv import overlap
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, scratch
from pydtconv.conv.bound_passes import run as run_bound
from pydtconv.conv.problem import DIRECTIONS, ConvProblem
from tests.fuzz import trials
from tests.reference import conv as reference

TRIALS = 12
LENGTHS = [n for n in range(2, 257) if fft.is_length(n)]
RTOL = {"float32": 2e-5, "float64": 1e-11}
#: half a unit of bfloat16's last place, and the error of float32's sums, as shares of the exact value and of its terms
ROUNDED, SUMMED = 2**-8 * (1 + 1e-3), 4e-6
PRODUCTS = 150_000


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for index in range(TRIALS):
        config.set_num_threads(int(random.integers(1, 3)))
        for name, trial in ROOMS.items():
            trials.keep("kernel.txt", f"seed {seed}, {name} {index}".encode())
            trial(random)


def _numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers in memory of any order; complex ones have both parts."""
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    values = values.astype(dtype)
    how = random.integers(5)
    if how == 0:
        return np.asfortranarray(values)
    if how == 1:
        return np.repeat(values, 2, axis=-1)[..., ::2]
    if how == 2:
        return values[::-1]
    return values


def _compare(got: np.ndarray, want: np.ndarray, rtol: float, told: str, terms: float = 1.0) -> None:
    if got.shape != want.shape:
        raise AssertionError(f"{told}: shape {got.shape}, expected {want.shape}")
    error = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), terms)
    if not error <= rtol:
        raise AssertionError(f"{told}: error {error:.2e}")


# -- transforms --------------------------------------------------------------------------------------------------------


def _transform(random: np.random.Generator) -> None:
    """Any of the eight, along any axes, of fewer or more points than there are."""
    name = str(random.choice(fft.__all__))
    two = name.endswith("2")
    inverse_real, real = name.startswith("irfft"), name.startswith("rfft")
    single = bool(random.random() < 0.5)
    kinds = ("float32", "float64") if real else ("complex64", "complex128") if inverse_real else None
    dtype = str((kinds or ("float32", "float64", "complex64", "complex128"))[0 if single else -1])
    points = [int(random.choice(LENGTHS if not two else LENGTHS[:40])) for _ in range(1 + two)]
    before, after = (tuple(int(v) for v in random.integers(1, 6, random.integers(0, 3))) for _ in range(2))
    given = [max(int(n * random.uniform(0.3, 1.5)), 2) if random.random() < 0.4 else n for n in points]
    if inverse_real:
        given[-1] = given[-1] // 2 + 1
    x = _numbers(random, (*before, *given, *after), dtype)
    places = [len(before) + i for i in range(len(given))]
    norm = (None, "ortho", "forward", "backward")[random.integers(4)]
    sizes = tuple(points) if two else points[0]
    arguments = (sizes, tuple(places) if two else places[0], norm)
    told = f"fft.{name} of {x.shape} {x.dtype}, strides {x.strides}, {arguments}"
    got = getattr(fft, name)(x, *arguments)
    wide = x.astype("complex128" if x.dtype.kind == "c" else "float64")
    want = getattr(np.fft, name)(wide, *arguments)
    expected = (np.float32 if single else np.float64) if inverse_real else (np.complex64 if single else np.complex128)
    if got.dtype != expected:
        raise AssertionError(f"{told}: dtype {got.dtype}, expected {np.dtype(expected)}")
    _compare(got, want, 1e-5 if single else 1e-12, told, 1e-3)
    trials.count(f"fft.{name}", "right")


# -- long signals ------------------------------------------------------------------------------------------------------


def _signals(random: np.random.Generator) -> None:
    two = bool(random.random() < 0.3)
    kinds = ("float32", "float64", "complex64", "complex128")
    dtype, taps_dtype = (str(kinds[random.integers(4)]) for _ in range(2))
    if two:
        n, m = random.integers(1, 60, 2), random.integers(1, 14, 2)
    else:
        n, m = [random.integers(1, 3000)], [random.integers(1, (12, 200, 700)[random.integers(3)])]
    batch = tuple(int(v) for v in random.integers(1, 4, random.integers(0, 3)))
    a = _numbers(random, (*batch, *(int(v) for v in n)), dtype)
    b = _numbers(random, tuple(int(v) for v in m), taps_dtype)
    mode, domain = str(random.choice(overlap.MODES)), str(random.choice(overlap.DOMAINS))
    method = str(random.choice(overlap.METHODS))
    block: Any = int(random.integers(1, 200)) if random.random() < 0.3 else None
    if block is not None and method == "parts":
        block = tuple(int(v) for v in random.permutation([block, max(block // int(random.integers(1, 4)), 1)]))
        block = block if max(block) % min(block) == 0 else None
    if method == "direct":
        block = None
    if domain == "spatial" and a.size * b.size > 2_000_000:
        domain = "spectral"
    told_name = str(random.choice(("convolve", "correlate")))
    function = getattr(overlap, told_name)
    told = f"{told_name} of {a.shape} {a.dtype} with {b.shape} {b.dtype}, {mode} {method} {domain} {block}"
    try:
        got = function(a, b, mode, method, domain, block)
    except ValueError as error:
        if block is None or "products have at most" not in str(error):
            raise
        trials.count(f"{told_name} {method} {mode}", "refused")
        return
    taps = np.flip(b).conj() if told_name == "correlate" else b
    want = _convolved(a.astype("complex128"), taps.astype("complex128"), mode)
    dtype_of = np.result_type(a.dtype, b.dtype)
    if got.dtype != dtype_of:
        raise AssertionError(f"{told}: dtype {got.dtype}, expected {dtype_of}")
    single = dtype_of.itemsize == (4 if dtype_of.kind == "f" else 8)
    _compare(got, want, 2e-5 if single else 1e-11, told, np.sqrt(b.size))
    trials.count(f"{told_name} {method} {mode}", "right")


def _convolved(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """By NumPy's transforms of the whole length, in complex numbers of float64."""
    axes = tuple(range(-b.ndim, 0))
    full = [n + m - 1 for n, m in zip(a.shape[-b.ndim :], b.shape, strict=True)]
    y = np.fft.ifftn(np.fft.fftn(a, full, axes) * np.fft.fftn(b, full, axes), axes=axes)
    cut = []
    for n, m in zip(a.shape[-b.ndim :], b.shape, strict=True):
        first, last = {"full": (0, n + m - 1), "same": ((m - 1) // 2, (m - 1) // 2 + n)}.get(
            mode, (min(n, m) - 1, max(n, m))
        )
        cut.append(slice(first, last))
    return y[(..., *cut)]


# -- convolutions of one and three axes, and of bfloat16 ---------------------------------------------------------------


def _problem(random: np.random.Generator, rank: int, dtype: str) -> ConvProblem:
    while True:
        groups = int(random.choice((1, 1, 1, 2, 3)))
        ci, co = (groups * int(random.choice((1, 2, 3, 5, 8, 15, 16, 17, 32, 33))) for _ in range(2))
        if random.random() < 0.2:
            groups, co = ci, ci * int(random.integers(1, 3))
        spatial = [int(v) for v in random.integers(1, (0, 200, 24, 10)[rank], rank)]
        kernel = [int(v) for v in random.integers(1, (0, 20, 6, 4)[rank], rank)]
        padding: Any = ("valid", "same", [[int(v) for v in random.integers(0, 4, 2)] for _ in range(rank)])
        try:
            p = ConvProblem.of(
                (int(random.integers(1, 4)), *spatial, ci),
                (*kernel, ci // groups, co),
                [int(v) for v in random.choice((1, 1, 2, 3), rank)],
                padding[random.integers(3)],
                [int(v) for v in random.choice((1, 1, 1, 2, 3), rank)],
                groups,
                dtype,
            )
        except ValueError as error:
            if "would be empty" not in str(error):
                raise
            continue
        if p.flops <= 2 * PRODUCTS:
            return p


def _exact(p: ConvProblem, x: np.ndarray, w: np.ndarray, dy: np.ndarray) -> dict[str, np.ndarray]:
    options = {"strides": p.strides, "padding": p.padding, "dilation": p.dilation, "groups": p.groups}
    return {
        "forward": reference.forward(x, w, **options),
        "backward_data": reference.backward_data(dy, w, p.x_shape, **options),
        "backward_weights": reference.backward_weights(x, dy, p.w_shape, **options),
    }


def _axes(random: np.random.Generator) -> None:
    """One axis or three, every algorithm, with memory around the workspace that must stay."""
    dtype = str(random.choice(("float32", "float64")))
    p = _problem(random, (1, 3)[random.integers(2)], dtype)
    x, w, dy = (random.standard_normal(shape).astype(dtype) for shape in (p.x_shape, p.w_shape, p.y_shape))
    want = _exact(p, x, w, dy)
    for direction in DIRECTIONS:
        for name, reason in conv.explain(p, direction).items():
            if reason is not None:
                continue
            out = np.full(want[direction].shape, np.nan, dtype)
            arrays = {"forward": (x, w, out), "backward_data": (out, w, dy), "backward_weights": (x, out, dy)}
            size = conv.workspace_bytes(p, direction, name)
            workspace = np.full(size + 128, 0xA5, np.uint8)
            start = -workspace.ctypes.data % 64
            run_bound(bind(p, direction, name, *arrays[direction], workspace=workspace[start : start + size]))
            told = f"{name} {direction} of {p}"
            terms = max(np.abs(want[direction]).max(), 1.0)
            _compare(out, want[direction], RTOL[dtype] * TABLE[name].rounding, told, terms)
            if not ((workspace[:start] == 0xA5).all() and (workspace[start + size :] == 0xA5).all()):
                raise AssertionError(f"{told}: something else than the workspace was written")
            trials.count(f"{len(p.spatial)}-D {direction} {name}", "right")


def _rounded(values: np.ndarray) -> np.ndarray:
    return dtypes.from_bits(dtypes.to_bits(values.astype(np.float32)))


def _bfloat16_kernel(random: np.random.Generator) -> str:
    """Makes a usable micro-kernel for bfloat16 active."""
    names = [kernel.name for kernel in microkernels.available("bfloat16") if kernel.usable]
    name = str(names[random.integers(len(names))])
    microkernels.select(name, "bfloat16")
    return name


def _near(bits: np.ndarray, want: np.ndarray, terms: np.ndarray | np.floating, told: str) -> None:
    """Each number is within half a unit of the exact one, and an error of its float32 sum."""
    got = dtypes.from_bits(bits).astype("float64") if bits.dtype == np.uint16 else bits.astype("float64")
    share = ROUNDED if bits.dtype == np.uint16 else 0.0
    wrong = ~(np.abs(got - want) <= np.abs(want) * share + terms * SUMMED)
    if wrong.any():
        raise AssertionError(f"{told}: {int(wrong.sum())} of {wrong.size} numbers are wrong")


def _bfloat16(random: np.random.Generator) -> None:
    """Convolutions of images in bfloat16, each algorithm that can do them, by each micro-kernel."""
    p = _problem(random, int(random.choice((1, 2, 2, 3))), "bfloat16")
    kernel = _bfloat16_kernel(random)
    try:
        x, w, dy = (_rounded(random.standard_normal(shape)) for shape in (p.x_shape, p.w_shape, p.y_shape))
        wide = [array.astype("float64") for array in (x, w, dy)]
        want, terms = _exact(p, *wide), _exact(p, *map(np.abs, wide))
        bits_x, bits_dy = dtypes.to_bits(x), dtypes.to_bits(dy)
        for direction in DIRECTIONS:
            for name, reason in conv.explain(p, direction).items():
                if reason is not None:
                    continue
                images = direction != "backward_weights"
                out = np.full(want[direction].shape, 0x7FC0 if images else np.nan, np.uint16 if images else np.float32)
                arrays = {
                    "forward": (bits_x, w, out),
                    "backward_data": (out, w, bits_dy),
                    "backward_weights": (bits_x, out, bits_dy),
                }
                run_bound(
                    bind(p, direction, name, *arrays[direction]), scratch(conv.workspace_bytes(p, direction, name))
                )
                of_sum = terms[direction] if TABLE[name].contained else terms[direction].max()
                _near(
                    out,
                    want[direction],
                    TABLE[name].rounding_in("bfloat16") * of_sum,
                    f"{name} {direction} of {p} by {kernel}",
                )
                trials.count(f"bfloat16 {direction} {name}", "right")
    finally:
        microkernels.select(None, "bfloat16")


def _products(random: np.random.Generator) -> None:
    """Matrix products with operands and results of both kinds, transposed, sliced, added to."""
    m, n, k = (int(random.choice((1, 2, 7, 15, 16, 17, 31, 33, 64, 100))) for _ in range(3))
    kernel = _bfloat16_kernel(random)
    try:
        bits = [bool(random.random() < 0.6) for _ in range(3)]
        a, b, c = (_rounded(random.standard_normal(shape)) for shape in ((m, k), (k, n), (m, n)))
        beta, alpha = float(random.choice((0.0, 1.0, 0.5))), float(random.choice((1.0, 1.0, -0.25)))
        out = np.full((m, n + int(random.integers(0, 5))), np.nan, np.float32)[:, :n]
        out[...] = c
        out = dtypes.to_bits(c) if bits[2] else out
        operands = []
        for array, is_bits, turned in zip((a, b), bits, random.random(2) < 0.3, strict=False):
            held = dtypes.to_bits(array) if is_bits else array
            operands.append(np.asfortranarray(held) if turned else held)
        gemm.multiply_mixed(*operands, out, alpha, beta)
        wide = [array.astype("float64") for array in (a, b, c)]
        want = alpha * wide[0] @ wide[1] + beta * wide[2]
        terms = abs(alpha) * np.abs(wide[0]) @ np.abs(wide[1]) + beta * np.abs(wide[2])
        _near(out, want, terms, f"{m}x{n}x{k}, alpha {alpha}, beta {beta}, bits {bits}, by {kernel}")
        trials.count("bfloat16 products", "right")
    finally:
        microkernels.select(None, "bfloat16")


ROOMS: dict[str, Callable[[np.random.Generator], None]] = {
    "transform": _transform,
    "signals": _signals,
    "axes": _axes,
    "bfloat16": _bfloat16,
    "products": _products,
}
