"""Convolution of long signals in blocks: schedule, methods and modes beside plain sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pydtconv import config
from pydtconv._ext import fft as ext
from pydtconv.conv import overlap, overlap_blocks, parts


def test_the_schedule_of_an_example() -> None:
    division = parts.schedule(6, 5, 6, 12)[0]
    assert [interval.start for interval in division.intervals] == [0, 18, 36, 54, 72, 90]
    assert [set(interval.pairs) for interval in division.intervals] == [
        {(0, 0)},
        {(1, 1), (3, 0)},
        {(0, 3), (2, 2), (4, 1)},
        {(1, 4), (3, 3), (5, 2)},
        {(4, 4)},
        set(),
    ]


@pytest.mark.parametrize(("n1", "n2", "l1", "l2"), [(6, 5, 6, 12), (4, 7, 8, 4), (3, 3, 5, 5), (1, 9, 6, 2)])
def test_every_pair_is_in_one_interval_at_its_offset(n1: int, n2: int, l1: int, l2: int) -> None:
    seen = []
    for division in parts.schedule(n1, n2, l1, l2):
        starts = [interval.start for interval in division.intervals]
        assert all(later - start == l1 + l2 for start, later in pairwise(starts))
        for interval in division.intervals:
            assert all(i * l1 + j * l2 == interval.start for i, j in interval.pairs)
            seen += interval.pairs
    assert sorted(seen) == [(i, j) for i in range(n1) for j in range(n2)]


def test_a_slice_has_the_pairs_that_reach_it_alone() -> None:
    n1, n2, l1, l2 = 6, 5, 6, 12
    for start, stop in ((0, 1), (17, 40), (50, 51), (94, 95)):
        found = {pair for d in parts.schedule(n1, n2, l1, l2, start, stop) for i in d.intervals for pair in i.pairs}
        reach = {(i, j) for i in range(n1) for j in range(n2)
                 if i * l1 + j * l2 < stop and i * l1 + j * l2 + l1 + l2 - 1 > start}  # fmt: skip
        assert found == reach


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((6, 5, 6, 9), "one divides the other, got 6 and 9"),
        ((0, 5, 6, 6), "n1: expected an integer of 1 or more, got 0"),
        ((2, 2, 4, 4, 3, 16), "slice of the 15 results, got 3 to 16"),
        ((2, 2, 4, 4, 5, 5), "slice of the 15 results"),
    ],
)
def test_errors_of_the_schedule(sizes: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parts.schedule(*sizes)


def signal(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def plain(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """Sums of products in double precision; of two axes tap by tap."""
    wide = np.result_type(a.dtype, b.dtype, "float64")
    axes = b.ndim
    full = np.zeros((*a.shape[:-axes], *(n + m - 1 for n, m in zip(a.shape[-axes:], b.shape, strict=True))), wide)
    for tap in np.ndindex(b.shape):
        full[(..., *(slice(t, t + n) for t, n in zip(tap, a.shape[-axes:], strict=True)))] += a.astype(wide) * b[tap]
    if mode == "full":
        return full
    at = []
    for n, m in zip(a.shape[-axes:], b.shape, strict=True):
        at.append(slice((m - 1) // 2, (m - 1) // 2 + n) if mode == "same" else slice(min(n, m) - 1, max(n, m)))
    return full[(..., *at)]


CASES = [
    ((1000,), (31,), "float32", "float32"),
    ((3, 777), (300,), "float32", "float32"),
    ((2, 40), (129,), "float64", "float64"),
    ((500,), (40,), "complex64", "float32"),
    ((2, 300), (17,), "float64", "complex128"),
    ((9,), (1,), "float64", "float64"),
    ((40, 37), (5, 7), "float32", "float32"),
    ((2, 3, 60, 20), (31, 3), "float64", "float64"),
    ((2, 9, 30), (14, 21), "float32", "float32"),
    ((20, 31), (4, 1), "complex128", "complex128"),
]
METHODS = [(method, domain) for method in overlap.METHODS for domain in overlap.DOMAINS]
LIMITS = {"float32": 1e-6, "complex64": 1e-6, "float64": 2e-15, "complex128": 2e-15}


def check(got: np.ndarray, want: np.ndarray, told: object) -> None:
    assert got.shape == want.shape, told
    assert np.linalg.norm(got - want) <= LIMITS[got.dtype.name] * np.linalg.norm(want), told


@pytest.mark.parametrize(("method", "domain"), METHODS)
@pytest.mark.parametrize("mode", overlap.MODES)
def test_every_method(method: str, domain: str, mode: str) -> None:
    for shape, taps, *dtypes in CASES:
        a, b = signal(shape, dtypes[0], 1), signal(taps, dtypes[1], 2)
        got, want = overlap.convolve(a, b, mode, method, domain), plain(a, b, mode)
        assert got.dtype == np.result_type(a, b)
        check(got, want, (shape, taps, dtypes))


@pytest.mark.parametrize(("method", "domain"), METHODS[3:])
@pytest.mark.parametrize("mode", overlap.MODES)
def test_slices(method: str, domain: str, mode: str) -> None:
    random = np.random.default_rng(3)
    for shape, taps, block in (((2, 300), (40,), 25), ((50, 40), (9, 12), (7, 10))):
        a, b = signal(shape, "float64", 1), signal(taps, "float64", 2)
        want, axes = plain(a, b, mode), len(taps)
        sizes: object = (block, block) if method == "parts" else None if method == "direct" else block
        for _ in range(4):
            start = [int(random.integers(0, n)) for n in want.shape[-axes:]]
            end = [int(random.integers(low + 1, n + 1)) for low, n in zip(start, want.shape[-axes:], strict=True)]
            edges = (start[0], end[0]) if axes == 1 else (start, tuple(end))
            got = overlap.convolve(a, b, mode, method, domain, sizes, slice_start=edges[0], slice_end=edges[1])
            part = want[(..., *(slice(low, high) for low, high in zip(start, end, strict=True)))]
            assert got.shape == part.shape
            assert np.abs(got - part).max() <= 1e-14 * np.abs(want).max(), (shape, edges)


@pytest.mark.parametrize(("method", "domain"), METHODS[3:])
def test_only_what_a_slice_needs_is_computed(method: str, domain: str) -> None:
    a, b = signal((60_000,), "float32", 1), signal((50,), "float32", 2)
    all_of_it, some = (
        overlap.work(a, b, "full", method, domain, slice_start=start, slice_end=end)
        for start, end in ((None, None), (30_000, 30_100))
    )
    groups = overlap.work(a, b, "full", method, domain, (256, 256) if method == "parts" else None,
                          slice_start=30_000, slice_end=30_100).work_groups  # fmt: skip
    assert groups <= 4
    assert some.reads < all_of_it.reads / 2
    assert some.writes < all_of_it.writes / 2


@pytest.mark.parametrize("domain", overlap.DOMAINS)
def test_bits_do_not_depend_on_threads_or_privatization(domain: str) -> None:
    threads = config.num_threads()
    try:
        for shape, taps, block in (((2, 3000), (100,), 128), ((90, 80), (9, 12), (16, 20))):
            a, b = signal(shape, "float32", 1), signal(taps, "float32", 2)
            for method in overlap.METHODS[1:]:
                sizes: object = (block, block) if method == "parts" else None if method == "direct" else block
                private = (False, True) if method in ("overlap_add", "parts") else (False,)
                seen = []
                for count in (1, 3):
                    config.set_num_threads(count)
                    for own in private:
                        seen.append(overlap.convolve(a, b, "full", method, domain, sizes, private=own))
                assert all(np.array_equal(seen[0], other) for other in seen), (shape, method)
    finally:
        config.set_num_threads(threads)


def test_threads_share_large_transforms() -> None:
    threads = config.num_threads()
    a, b = signal((90_000,), "float32", 1), signal((20,), "float32", 2)
    want, seen = plain(a, b, "full"), []
    try:
        for count in (1, 2):
            config.set_num_threads(count)
            for method, block in (("overlap_add", 90_000), ("overlap_discard", 40_000), ("parts", (65_536, 32))):
                seen.append(overlap.convolve(a, b, "full", method, "spectral", block))
                check(seen[-1], want, (method, count))
    finally:
        config.set_num_threads(threads)
    assert all(np.array_equal(one, two) for one, two in zip(seen[:3], seen[3:], strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_transform(dtype: str) -> None:
    rings = overlap_blocks._rings(np.dtype(dtype).itemsize)
    for first, high, wide in (points for points in rings.points if np.prod(points) <= 1 << 16):
        n = first * high * wide
        a, b = signal((2 * n - 20,), dtype, first), signal((21,), dtype, wide)
        sizes = (1, len(a), 1, 21, 0, 0, 1, 2 * n, 1, len(a), 1, 21, 1, 1, first, high, wide)
        of = ext.Overlap(dtype, 1, sizes, 1, False, 1)
        y = np.empty(2 * n, dtype)
        assert of.run(a, b, y, np.empty(of.workspace_bytes, np.uint8)) == 0
        check(y, np.convolve(a.astype("float64"), b.astype("float64")), (first, high, wide))


def test_steps_of_overlap_add() -> None:
    a, b = signal((300,), "float64", 1), signal((50,), "float64", 2)
    for block, least in ((49, 2), (48, 3), (25, 3), (20, 4), (400, 1)):
        assert overlap.work(a, b, method="overlap_add", block=block).blocks.steps == (1, least)
        for steps in (least, least + 1):
            check(overlap.convolve(a, b, method="overlap_add", block=block, steps=steps), plain(a, b, "full"), block)
        if least > 1:
            with pytest.raises(ValueError, match=f"steps: expected {least} or more for blocks of .* got {least - 1}"):
                overlap.convolve(a, b, method="overlap_add", block=block, steps=least - 1)
    chosen = overlap.work(signal((100_000,), "float32", 1), signal((5000,), "float32", 2), method="overlap_add")
    assert chosen.blocks.steps == (1, 2)
    many = overlap.work(signal((90_000,), "float32", 1), signal((5000,), "float32", 2), method="overlap_add", steps=3)
    assert many.blocks.steps == (1, 3)


def test_work_is_counted() -> None:
    """1,000 samples with 21 taps: blocks of 100, and what the definitions of the methods give."""
    a, b = signal((1000,), "float32", 1), signal((21,), "float32", 2)
    discard, add, own = (
        overlap.work(a, b, method=method, domain="spatial", block=100, private=private)
        for method, private in (("overlap_discard", False), ("overlap_add", False), ("overlap_add", True))
    )
    # 1,020 results in 11 blocks, each with 20 samples more; the first block lacks them, the last ones what is missing
    assert (discard.work_groups, discard.writes, discard.efficiency) == (11, 1020, 1020 / 1100)
    assert discard.reads - 11 * 32 == 1000 + 10 * 20
    # 10 blocks of 120 results, which are read and written
    assert (add.work_groups, add.writes, add.efficiency) == (10, 1200, 1020 / 1200)
    assert add.reads - 10 * 32 == 1000 + 1200
    # two copies of the results, added up in the end
    assert (own.work_groups, own.writes) == (10, 1200 + 1020)
    assert own.reads - 10 * 32 == 1000 + 2 * 1020
    spectral = overlap.work(a, b, method="overlap_discard", domain="spectral", block=100)
    assert spectral.local_memory == 4 * 512
    assert spectral.efficiency == 1020 / (11 * 512)


@pytest.mark.parametrize("domain", overlap.DOMAINS)
def test_parts_are_those_of_the_schedule(domain: str) -> None:
    a, b = signal((70, 96), "float64", 1), signal((33, 40), "float64", 2)
    sizes = ((8, 16), (16, 8))
    axes = []
    for n, m, l1, l2, start, stop in ((70, 33, 8, 16, 20, 60), (96, 40, 16, 8, 50, 90)):
        divisions = parts.schedule(-(-n // l1), -(-m // l2), l1, l2, start, stop)
        axes.append(sum(bool(interval.pairs) for division in divisions for interval in division.intervals))
    done = overlap.work(a, b, "full", "parts", domain, sizes, slice_start=(20, 50), slice_end=(60, 90))
    assert done.work_groups == axes[0] * axes[1]
    got = overlap.convolve(a, b, "full", "parts", domain, sizes, slice_start=(20, 50), slice_end=(60, 90))
    check(got, plain(a, b, "full")[20:60, 50:90], domain)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("domain", overlap.DOMAINS)
@pytest.mark.parametrize("method", overlap.METHODS)
def test_a_method_is_run(method: str, domain: str, axes: int) -> None:
    a, b = signal((150, 160), "float64", 1), signal((60,) * axes, "float64", 2)
    blocks = overlap.work(a, b, "full", method, domain).blocks
    assert blocks.method == method or method in ("auto", "direct")
    assert "auto" in (method, domain) or any(blocks.points) == (domain == "spectral" and method != "direct")


def test_few_taps_are_multiplied_directly() -> None:
    for taps, direct in (((3,), True), ((1000,), False), ((3, 3), True), ((40, 40), False)):
        blocks = overlap.work(signal((400, 2000), "float32", 1), signal(taps, "float32", 2)).blocks
        assert (blocks.points == (0, 0, 0)) == direct, taps


def test_arrays_in_any_order() -> None:
    a, b = signal((40, 30), "float32", 1), signal((7, 5), "float32", 2)
    want = plain(a.T, b.T, "full")
    check(overlap.convolve(a.T, b.T), want, "transposed")
    check(overlap.convolve(a.T.astype(">f4"), b.T), want, "big-endian")
    frozen = a.copy()
    frozen.flags.writeable = False
    check(overlap.convolve(frozen, b), plain(a, b, "full"), "read-only")


def test_blocks_of_any_length() -> None:
    a, b = signal((700,), "float64", 5), signal((90,), "float64", 6)
    want = plain(a, b, "full")
    for method, block in (("overlap_discard", 64), ("overlap_add", 33), ("parts", (30, 60)), ("parts", (64, 16))):
        for domain in overlap.DOMAINS:
            check(overlap.convolve(a, b, method=method, domain=domain, block=block), want, (method, block))
    image, taps = signal((2, 50, 40), "float64", 5), signal((9, 12), "float64", 6)
    want = plain(image, taps, "full")
    for method, several in (
        ("overlap_discard", (7, 100)),
        ("overlap_add", 10),
        ("overlap_add", [60, 5]),
        ("parts", (8, 4)),
        ("parts", ((5, 20), (10, 4))),
    ):
        for domain in overlap.DOMAINS:
            check(overlap.convolve(image, taps, method=method, domain=domain, block=several), want, (method, several))


def test_correlation_is_scipys() -> None:
    scipy = pytest.importorskip("scipy.signal")
    a, b = signal((50,), "complex128", 7), signal((9,), "complex128", 8)
    for mode in overlap.MODES:
        assert np.allclose(overlap.correlate(a, b, mode), scipy.correlate(a, b, mode), rtol=0, atol=1e-12)
        assert np.allclose(overlap.convolve(a, b, mode), scipy.convolve(a, b, mode), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "wrap"}, "mode: expected one of full, same, valid, got 'wrap'"),
        ({"method": "fft"}, "method: expected one of auto, .* got 'fft'"),
        ({"domain": "time"}, "domain: expected one of auto, spectral, spatial, got 'time'"),
        ({"method": "parts", "block": (6, 9)}, "one divides the other, got \\(6, 9\\)"),
        ({"method": "parts", "block": 6}, "block: expected a pair"),
        ({"method": "parts", "block": (0, 6)}, "block: expected an integer of 1 or more, got 0"),
        ({"method": "parts", "block": (1 << 30, 1 << 30)}, "block: expected blocks whose products have at most"),
        ({"method": "overlap_add", "block": (4, 8)}, "block: expected an integer for a filter of 1 axes, got \\(4, 8"),
        ({"method": "overlap_discard", "block": (8,)}, "block: expected an integer for a filter of 1 axes, got \\(8,"),
        ({"block": [8, 8]}, "block: expected an integer for a filter of 1 axes"),
        ({"block": True}, "block: expected an integer for a filter of 1 axes, got True"),
        ({"block": "8"}, "block: expected an integer for a filter of 1 axes, got '8'"),
        ({"method": "overlap_add", "block": 0}, "block: expected an integer of 1 or more, got 0"),
        ({"method": "direct", "block": 4}, "block: expected None for 'direct'"),
        ({"steps": 2}, "steps: expected method 'overlap_add', got 'auto'"),
        ({"method": "overlap_add", "steps": 0}, "steps: expected an integer of 1 or more, got 0"),
        ({"method": "overlap_discard", "private": True}, "private: expected method 'overlap_add' or 'parts'"),
        ({"slice_start": -1}, "slice_start: expected an integer of 0 or more, got -1"),
        ({"slice_start": (1, 2)}, "slice_start: expected an integer for a filter of 1 axes"),
        ({"slice_start": 5, "slice_end": 5}, "expected a slice of the \\(24,\\) results, got \\(5,\\) to \\(5,\\)"),
        ({"slice_end": 25}, "expected a slice of the \\(24,\\) results"),
    ],
)
def test_errors(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        overlap.convolve(np.ones(20, "float32"), np.ones(5, "float32"), **options)


def test_errors_of_arrays() -> None:
    with pytest.raises(TypeError, match=r"b: expected float32, .* got int64"):
        overlap.convolve(np.ones(20, "float32"), np.ones(5, "int64"))
    with pytest.raises(ValueError, match="a: expected at least the 2 axes of b"):
        overlap.convolve(np.ones(20, "float32"), np.ones((5, 5), "float32"))
    with pytest.raises(TypeError, match="work: expected real arrays, got complex64"):
        overlap.work(np.ones(20, "complex64"), np.ones(5, "float32"))
    with pytest.raises(ValueError, match="b: expected an array that is not empty"):
        overlap.convolve(np.ones(20, "float32"), np.ones(0, "float32"))
