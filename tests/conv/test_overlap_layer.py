"""A layer whose passes share transforms beside its passes one by one."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import config
from pydtconv.conv import overlap
from pydtconv.conv.overlap_layer import Layer
from tests.conv.test_overlap import plain, signal

CASES = [((3, 500), (40,)), ((1000,), (31,)), ((20,), (50,)), ((2, 40, 37), (9, 12)), ((300, 200), (3, 5))]


def gradients(a: np.ndarray, b: np.ndarray, dy: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Sums over all results, tap by tap, of dy put into the full convolution's place."""
    axes = b.ndim
    full = np.zeros((*a.shape[:-axes], *(n + m - 1 for n, m in zip(a.shape[-axes:], b.shape, strict=True))))
    at = []
    for n, m in zip(a.shape[-axes:], b.shape, strict=True):
        starts = {"full": (0, n + m - 1), "same": ((m - 1) // 2, (m - 1) // 2 + n), "valid": (min(n, m) - 1, max(n, m))}
        at.append(slice(*starts[mode]))
    full[(..., *at)] = dy
    da, db = np.zeros(a.shape), np.zeros(b.shape)
    for tap in np.ndindex(b.shape):
        part = full[(..., *(slice(t, t + n) for t, n in zip(tap, a.shape[-axes:], strict=True)))]
        da += part * b[tap]
        db[tap] = (part * a).sum()
    return da, db


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", overlap.MODES)
def test_passes(mode: str, dtype: str) -> None:
    for shape, taps in CASES:
        layer = Layer(shape, taps, dtype, mode)
        for seed in (1, 2):  # values of the first call do not stay
            a, b = signal(shape, dtype, seed), signal(taps, dtype, seed + 2)
            want = plain(a, b, mode)
            y = layer.forward(a, b)
            dy = signal(y.shape, dtype, 5)
            for got, expected in zip((y, *layer.backward(dy)), (want, *gradients(a, b, dy, mode)), strict=True):
                assert got.dtype == dtype
                limit = 3e-6 if dtype == "float32" else 5e-15
                assert np.linalg.norm(got - expected) <= limit * np.linalg.norm(expected), (shape, taps)


def test_threads_give_the_same_bits() -> None:
    threads, seen = config.num_threads(), []
    shape, taps = (120_000,), (9_000,)
    a, b = signal(shape, "float32", 1), signal(taps, "float32", 2)
    try:
        for count in (1, 3):
            config.set_num_threads(count)
            layer = Layer(shape, taps, mode="same")
            y = layer.forward(a, b)
            seen.append((layer._plan.blocks, y, *layer.backward(y)))
    finally:
        config.set_num_threads(threads)
    if seen[0][0] == seen[1][0]:
        assert all(np.array_equal(one, other) for one, other in zip(seen[0][1:], seen[1][1:], strict=True))
    want = overlap.convolve(a, b, "same")
    assert np.linalg.norm(seen[0][1] - want) <= 1e-6 * np.linalg.norm(want)


def test_errors() -> None:
    layer = Layer((100,), (5,))
    with pytest.raises(RuntimeError, match="backward: expected a forward before"):
        layer.backward(np.ones(104, "float32"))
    with pytest.raises(ValueError, match=r"a: expected an array of float32 \(100,\), got float64 \(100,\)"):
        layer.forward(np.ones(100), np.ones(5, "float32"))
    layer.forward(np.ones(100, "float32"), np.ones(5, "float32"))
    with pytest.raises(ValueError, match=r"dy: expected an array of float32 \(104,\), got float32 \(100,\)"):
        layer.backward(np.ones(100, "float32"))
    with pytest.raises(TypeError, match="dtype: expected float32 or float64, got complex64"):
        Layer((100,), (5,), "complex64")
