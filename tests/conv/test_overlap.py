"""Convolution of long signals in blocks: schedule, methods and modes beside plain sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pydtconv.conv import overlap, parts


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
]
METHODS = [
    *((method, "spectral") for method in ("auto", "overlap_discard", "overlap_add", "parts", "direct")),
    *((method, "spatial") for method in ("auto", "overlap_add", "parts", "direct")),
]


@pytest.mark.parametrize(("method", "domain"), METHODS)
@pytest.mark.parametrize("mode", overlap.MODES)
def test_signals(method: str, domain: str, mode: str) -> None:
    for shape, taps, *dtypes in CASES:
        a, b = signal(shape, dtypes[0], 1), signal(taps, dtypes[1], 2)
        got, want = overlap.convolve(a, b, mode, method, domain), plain(a, b, mode)
        assert got.shape == want.shape
        assert got.dtype == np.result_type(a, b)
        limit = 1e-6 if "32" in dtypes[0] or dtypes[0] == "complex64" else 2e-15
        assert np.linalg.norm(got - want) <= limit * np.linalg.norm(want), (shape, taps, dtypes)


@pytest.mark.parametrize("method", ["auto", "overlap_add", "direct"])
def test_images(method: str) -> None:
    for shape, taps, mode in (
        ((40, 37), (5, 7), "same"),
        ((2, 150, 20), (131, 3), "full"),
        ((3, 30, 30), (9, 9), "valid"),
    ):
        a, b = signal(shape, "float32", 3), signal(taps, "float32", 4)
        got, want = overlap.convolve(a, b, mode, method), plain(a, b, mode)
        assert got.shape == want.shape
        assert np.linalg.norm(got - want) <= 1e-6 * np.linalg.norm(want)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("domain", overlap.DOMAINS)
@pytest.mark.parametrize("method", overlap.METHODS)
def test_a_method_is_run_or_refused(method: str, domain: str, axes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"_direct": "direct", "_in_parts": "parts", "_discard": "overlap_discard", "_add": "overlap_add"}
    ran: list[str] = []
    for name, its in runs.items():
        own = getattr(overlap, name)
        monkeypatch.setattr(overlap, name, lambda *of, own=own, its=its: (ran.append(its), own(*of))[1])
    a, b = signal((30, 40), "float64", 1), signal((9,) * axes, "float64", 2)
    if method in ("overlap_discard", "parts") and (axes == 2 or (method, domain) == ("overlap_discard", "spatial")):
        with pytest.raises(ValueError, match=f"method: expected 'overlap_add'.*got '{method}'"):
            overlap.convolve(a, b, "full", method, domain)
        assert not ran
        return
    got, want = overlap.convolve(a, b, "full", method, domain), plain(a, b, "full")
    assert np.linalg.norm(got - want) <= 1e-14 * np.linalg.norm(want)
    expected = (
        ("overlap_discard" if (axes, domain) == (1, "spectral") else "overlap_add") if method == "auto" else method
    )
    assert ran[0] == expected


def test_blocks_of_any_length() -> None:
    a, b = signal((700,), "float64", 5), signal((90,), "float64", 6)
    want = plain(a, b, "full")
    for method, block in (("overlap_discard", 64), ("overlap_add", 33), ("parts", (30, 60)), ("parts", (64, 16))):
        got = overlap.convolve(a, b, method=method, block=block)
        assert np.linalg.norm(got - want) <= 2e-15 * np.linalg.norm(want), (method, block)


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
        ({"domain": "time"}, "domain: expected one of spectral, spatial, got 'time'"),
        ({"method": "parts", "block": (6, 9)}, "one divides the other, got \\(6, 9\\)"),
        ({"method": "parts", "block": 6}, "block: expected a pair"),
        ({"method": "parts", "block": (0, 6)}, "block: expected an integer from 1 to 255, got 0"),
        ({"method": "overlap_add", "block": (4, 8)}, "block: expected an integer for 'overlap_add'"),
        ({"method": "overlap_discard", "block": (8,)}, "block: expected an integer for 'overlap_discard'"),
        ({"block": [8, 8]}, "block: expected an integer for 'overlap_discard'"),
        ({"method": "overlap_add", "block": 0}, "block: expected an integer from 1 to 255, got 0"),
        ({"method": "direct", "block": 4}, "block: expected None for 'direct'"),
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
    with pytest.raises(ValueError, match="b: expected an array that is not empty"):
        overlap.convolve(np.ones(20, "float32"), np.ones(0, "float32"))
