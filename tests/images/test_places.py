"""Arrays at places between their elements, beside a loop over points and corners in NumPy."""

import itertools

import numpy as np
import pytest

from pydtconv import config
from pydtconv._ext import image
from pydtconv.images.places import sample, spread
from pydtconv.images.steps import FILL_MODES

PAD = {"nearest": "edge", "wrap": "wrap", "mirror": "reflect", "reflect": "symmetric"}


def at(x: np.ndarray, index: tuple[int, ...], mode: str, value: float) -> np.ndarray:
    """The element of an index that may be outside, by NumPy's own padding."""
    for axis, i in enumerate(index):
        extent = x.shape[axis]
        if mode == "constant" and not 0 <= i < extent:
            return np.full(x.shape[len(index) :], value)
    if mode == "constant":
        return x[index]
    places = [np.pad(np.arange(extent), (30, 30), PAD[mode])[i + 30] for i, extent in zip(index, x.shape, strict=False)]
    return x[tuple(places)]


def reference(x: np.ndarray, coordinates: np.ndarray, order: int, mode: str, value: float) -> np.ndarray:
    rank = len(coordinates)
    found = []
    for point in coordinates.reshape(rank, -1).T:
        if order == 0:
            found.append(at(x, tuple(int(t) for t in np.round(point)), mode, value))
            continue
        low = np.floor(point).astype(int)
        total = 0.0
        for corner in itertools.product((0, 1), repeat=rank):
            shares = [t - i if side else 1 - (t - i) for t, i, side in zip(point, low, corner, strict=True)]
            total = total + np.prod(shares) * at(x, tuple(low + corner), mode, value)
        found.append(total)
    return np.reshape(found, (*coordinates.shape[1:], *x.shape[rank:]))


@pytest.mark.parametrize("mode", FILL_MODES)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("extents", [(7,), (4, 6), (3, 1, 5), (2, 3, 2, 2)], ids=str)
def test_sampling(extents, order, mode):
    rng = np.random.default_rng(0)
    for inner, shape in (((), (4, 3)), ((2,), (11,)), ((5, 9), ())):
        x = rng.standard_normal((*extents, *inner)) * 90
        coordinates = rng.uniform(-9, 12, (len(extents), *shape))
        coordinates.reshape(len(extents), -1)[:, 0] = np.array(extents) - 1
        for dtype, rtol in (("float32", 1e-6), ("float64", 1e-12), ("int32", 0)):
            found = sample(x.astype(dtype), coordinates, order, mode, 7.0)
            want = reference(x.astype(dtype), coordinates, order, mode, 7.0)
            want = np.round(want) if dtype == "int32" else want
            np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol * 100)


def test_bits_do_not_depend_on_the_threads():
    rng = np.random.default_rng(0)
    x, coordinates = rng.standard_normal((60, 70, 3)).astype("float32"), rng.uniform(-9, 80, (2, 200, 300))
    found = []
    for threads in (1, 2, 3):
        config.set_num_threads(threads)
        found.append(sample(x, coordinates, 1, "reflect", 0))
    assert all((each == found[0]).all() for each in found)


@pytest.mark.parametrize("mode", FILL_MODES)
def test_places_that_are_no_numbers(mode):
    x, far = np.arange(6.0), np.array([[np.nan, np.inf, -np.inf, 1e300, -1e300]])
    assert np.isnan(sample(x, far[:, :3], 1, mode, 7)).all()
    assert np.isin(sample(x, far, 0, mode, 7), [*x, 7]).all()


def test_arrays_that_do_not_fit():
    x = np.zeros(6, "float32")
    with pytest.raises(ValueError, match="expected arrays that fit each other"):
        image.sample_places(np.array([7], np.int64), 1, 0, 0.0, np.zeros(3), x, np.zeros(3, "float32"))
    with pytest.raises(NotImplementedError):
        sample(np.zeros((1,) * 17), np.zeros((17, 1)), 1, "nearest", 0)


def test_nothing_is_spread_over_an_empty_image():
    dx = np.zeros((0, 4, 3), "float32")
    spread(dx, np.zeros((2, 0, 4)), np.zeros((0, 4, 3)), 1, "nearest")
    assert dx.shape == (0, 4, 3)
