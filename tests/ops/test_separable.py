"""Matrices along axes, beside products with the whole matrices in float64."""

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.kernels.cpu.separable import of_filter
from pydtconv.ops.separable import BANDS, Band, banded
from tests.ops.harness import check_op, normal

METHODS = ("linear", "cubic", "lanczos3", "lanczos5")
FILTERS = [
    *(("resize", size, method, antialias) for size in (4, 17) for method in METHODS for antialias in (False, True)),
    *(("resize", size, "nearest", False) for size in (1, 4, 9, 17)),
    *(("move", size, 0.7, -1.3, method, True) for size in (4, 9) for method in METHODS),
    ("filter", (0.25, 0.5, 0.125)),
    ("filter", (1.0, -2.0)),
    ("filter", tuple(range(1, 24))),
]


def weight(method: str, x: float) -> float:
    x = abs(x)
    if method == "linear":
        return max(1 - x, 0)
    if method == "cubic":
        return 1.5 * x**3 - 2.5 * x**2 + 1 if x < 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0
    radius = int(method[-1])
    return np.sinc(x) * np.sinc(x / radius) if x < radius else 0


def matrix(extent: int, kind: str, *settings) -> np.ndarray:
    """As the formulas say it, a number at a time."""
    if kind == "filter":
        (weights,) = settings
        half = len(weights) // 2
        return np.array([[dict(enumerate(weights)).get(k - i + half, 0) for k in range(extent)] for i in range(extent)])
    size, scale, start, method, antialias = settings if kind == "move" else (settings[0], None, 0, *settings[1:])
    scale = size / extent if scale is None else scale
    found = np.zeros((size, extent))
    for i in range(size):
        centre = (i + 0.5 - start) / scale - 0.5
        if method == "nearest":
            found[i, min(int(np.floor(centre + 0.5)), extent - 1)] = 1
            continue
        stretch = max(1 / scale, 1) if antialias else 1
        row = np.array([weight(method, (centre - k) / stretch) for k in range(extent)])
        if -0.5 <= centre <= extent - 0.5 and abs(row.sum()) > 1e-4:
            found[i] = row / row.sum()
    return found


def product(x: np.ndarray, axes, filters) -> np.ndarray:
    for axis, filter in zip(axes, filters, strict=True):
        x = np.moveaxis(np.tensordot(matrix(x.shape[axis], *filter), x, (1, axis)), 0, axis)
    return x


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_bands_are_those_of_their_formulas(filter):
    for extent in (1, 2, 9, 30):
        band = BANDS[filter[0]](extent, *filter[1:])
        want = matrix(extent, *filter)
        np.testing.assert_allclose(band.matrix, want, atol=1e-14)
        assert band.weights.shape[1] == max(band.counts.max(), 1)
        np.testing.assert_array_equal(banded(want.T).matrix, want.T)
        first, last = band.same
        assert 0 <= first < last <= len(band.starts)


@pytest.mark.parametrize("c", [1, 2, 3, 4, 7, 17])
def test_images(c):
    """All kinds, each with another one along the columns."""
    x = normal(2, 9, 12, c)
    for down, along in zip(FILTERS, FILTERS[7:] + FILTERS[:7], strict=True):
        y = ops.Separable((1, 2), (down, along))(x)
        np.testing.assert_allclose(y, product(x, (1, 2), (down, along)), rtol=1e-12, atol=1e-12)
    down, along = FILTERS[1], FILTERS[-3]
    check_op(ops.Separable((1, 2), (down, along)), x, reference=lambda x: product(x, (1, 2), (down, along)))


@pytest.mark.parametrize("axes", [(0,), (1,), (3,), (0, 1), (2, 3), (1, 3), (3, 1), (1, 2, 3)], ids=str)
def test_any_axes(axes):
    x, filters = normal(3, 4, 5, 6), (FILTERS[1], FILTERS[-2], FILTERS[2])[: len(axes)]
    separable = ops.Separable(axes, filters)
    check_op(separable, x, reference=lambda x: product(x, axes, filters))
    y = product(x, axes, filters)
    (back,) = separable.gradient([x], y, y)
    wide = x + 1
    np.testing.assert_allclose((back * wide).sum(), (y * product(wide, axes, filters)).sum(), rtol=1e-10)


def test_gradients_of_gradients_are_the_operator_again():
    x = normal(2, 5, 6, 3)
    down = ops.Separable((1, 2), (FILTERS[1], FILTERS[3]), (9, 8))
    check_op(down, normal(2, 4, 4, 3), rtol=1e-4)
    (again,) = down.gradient([normal(2, 4, 4, 3)], None, normal(2, 9, 8, 3))
    assert again.shape == (2, 4, 4, 3)
    assert x.shape == ops.Separable((1,), (("filter", [0.5, 0.5]),))(x).shape


def test_runs_of_rows_that_are_alike():
    weights = np.array([[1.0, 2], [1, 2], [1, 2], [3, 4], [3, 4]])
    assert Band(9, weights, np.arange(5), np.full(5, 2)).same == (0, 3)
    assert Band(9, weights, np.array([0, 2, 4, 6, 7]), np.full(5, 2)).same == (3, 5)


def test_bands_are_not_kept_for_ever():
    for extent in range(2, 80):
        ops.image.resize(np.zeros((extent, 3, 1), "float32"), (2, 2))
    assert of_filter.cache_info().currsize <= 64


def test_errors():
    with pytest.raises(ValueError, match="expected filters of kinds resize, move, filter, got"):
        ops.Separable((1,), (("resized", 3),))
    with pytest.raises(ValueError, match=r"expected a filter for each of axes \(1, 2\)"):
        ops.Separable((1, 2), (("filter", (1.0,)),))
    with pytest.raises(ValueError, match=r"expected a filter for each of axes \(1, 1\)"):
        ops.Separable((1, 1), (("filter", (1.0,)),) * 2)
    with pytest.raises(ValueError, match="axes: expected some of 2, got"):
        ops.Separable((2,), (("filter", (1.0,)),))(normal(2, 3))
