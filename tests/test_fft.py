"""pydtconv.fft beside numpy.fft in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import config, fft

LIMITS = {"float32": 5e-7, "float64": 1e-15}
LENGTHS = [n for n in range(2, 257) if fft.is_length(n)]
NAMES = ("fft", "ifft", "rfft", "irfft")


def some(shape: tuple[int, ...], dtype: str, name: str, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    if not name.startswith("rfft"):
        return (x + 1j * random.standard_normal(shape)).astype({"float32": "complex64", "float64": "complex128"}[dtype])
    return x.astype(dtype)


def check(name: str, x: np.ndarray, limit: float, **options: object) -> None:
    got = getattr(fft, name)(x, **options)
    want = getattr(np.fft, name)(x.astype("complex128" if np.iscomplexobj(x) else "float64"), **options)
    assert got.shape == want.shape
    assert got.dtype == (x.real.dtype if name.startswith("irfft") else np.result_type(x.dtype, "complex64"))
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert error <= limit, f"{name} of {x.shape} {x.dtype} {options}: relative error {error:.1e}"


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", NAMES)
def test_every_length_is_as_accurate_as_promised(name: str, dtype: str) -> None:
    for n in LENGTHS:
        check(name, some((3, n), dtype, name, n), LIMITS[dtype], n=n)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", NAMES)
def test_every_length_along_both_axes(name: str, dtype: str) -> None:
    for n, m in zip(LENGTHS, reversed(LENGTHS), strict=True):
        check(name + "2", some((2, n, m, 3), dtype, name, n), LIMITS[dtype], s=(n, m), axes=(1, 2))


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", NAMES)
def test_channels_and_rows_of_any_number(name: str, dtype: str) -> None:
    for shape, axis in [((5, 12, 37), 1), ((2, 3, 10), -1), ((35, 12), -1), ((9, 40), 0), ((14,), 0), ((2, 16, 1), 1)]:
        check(name, some(shape, dtype, name), LIMITS[dtype], axis=axis, n=shape[axis] if name != "irfft" else 2 * 9)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", NAMES)
def test_two_axes(name: str, dtype: str) -> None:
    for shape, axes in [((5, 12, 14), (-2, -1)), ((2, 8, 15, 21), (1, 2)), ((36, 10), (0, 1)), ((3, 2, 64, 3), (1, 2))]:
        check(name + "2", some(shape, dtype, name), LIMITS[dtype], axes=axes, s=[shape[axis] for axis in axes])


@pytest.mark.parametrize("name", NAMES)
def test_zeros_are_added_and_points_left_out(name: str) -> None:
    for m, n in ((5, 12), (20, 9), (13, 14), (7, 6)):
        check(name, some((4, m), "float32", name), 5e-7, n=n)
        check(name + "2", some((4, m, m + 1), "float32", name), 5e-7, s=(n, 10))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_norms(norm: str | None) -> None:
    for name in NAMES:
        check(name, some((4, 13 if name == "irfft" else 12), "float64", name), 1e-15, norm=norm)


def test_results_do_not_depend_on_threads() -> None:
    x = some((61, 24), "float32", "rfft")
    one, two = (_with_threads(threads, x) for threads in (1, 2))
    assert np.array_equal(one, two)


def _with_threads(threads: int, x: np.ndarray) -> np.ndarray:
    before = config.num_threads()
    config.set_num_threads(threads)
    try:
        return fft.rfft(x)
    finally:
        config.set_num_threads(before)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: fft.rfft(x[:, :11]), ValueError, "2\\^a 3\\^b 5\\^c 7\\^d from 2 to 256, got 11; numpy.fft.rfft"),
        (lambda x: fft.fft(x, n=512), ValueError, "got 512; numpy.fft.fft"),
        (lambda x: fft.fft(x, n=1), ValueError, "got 1; numpy.fft.fft"),
        (lambda x: fft.fft2(x, axes=(1, 0)), ValueError, "neighbours"),
        (lambda x: fft.fft(x, axis=3), ValueError, "axis: expected one of the 2 axes of x, got 3"),
        (lambda x: fft.fft(x, norm="unitary"), ValueError, "norm: expected .* got 'unitary'"),
        (lambda x: fft.rfft(x.astype("complex64")), TypeError, "got complex64"),
        (lambda x: fft.fft(x.astype("int32")), TypeError, "got int32; see numpy.fft.fft"),
        (lambda x: fft.fft(x.tolist()), TypeError, "expected a numpy.ndarray, got list"),
        (lambda x: fft.fft(x[:0]), ValueError, "not empty"),
        (lambda x: fft.fft2(x, s=(4, 4, 4)), ValueError, "two sizes"),
    ],
)
def test_errors(call, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(np.ones((4, 12), "float32"))
