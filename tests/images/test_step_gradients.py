"""Gradients of lists of steps: beside differences of `change` in float64."""

import numpy as np
import pytest

from pydtconv import config
from pydtconv.images import step_gradients, steps
from pydtconv.images.steps import FILL_MODES, affine, change, in_turn, places, side_by_side, step
from tests.images.cases import KINDS, shape_of, transform


def check(x, program, rng, step=1e-5):
    """The gradient along a random way, beside the difference along it."""
    dy, way = rng.normal(size=x.shape), rng.normal(size=x.shape)
    ends = [(change(x + sign * step * way, program) * dy).sum() for sign in (1, -1)]
    found = (step_gradients.gradient(x, program, dy) * way).sum()
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-4)


def test_a_rule_for_each_kind():
    assert list(step_gradients._RULES) == list(steps._KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(12):
        shape = shape_of(rng, [kind])
        check(rng.random(shape) * 255, KINDS[kind](rng, shape), rng)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", FILL_MODES)
def test_resampling_is_transposed(mode, order):
    """Also where pixels come from far outside, or, for a perspective, from no place at all."""
    rng = np.random.default_rng(order)
    for h, w in ((1, 1), (2, 7), (9, 6)):
        x = rng.normal(size=(1, h, w, 2))
        nowhere = np.array([1.0, 0, 0, 0, 1, 0, -1, 0])
        for t in (transform(rng, h, w), np.array([1.0, 0, 0.5, 0, 1, 0, 0, 0]), nowhere):
            check(x, affine(1, t[None], order, mode, 7.0), rng)
        grid = np.mgrid[:h, :w] + rng.normal(scale=9, size=(2, h, w))
        check(x, places([grid], order, mode, 7.0), rng)


def test_flat_images():
    rng = np.random.default_rng(1)
    for kind in ("auto_contrast", "equalize"):
        x = np.full((1, 4, 5, 3), 9.0)
        program = KINDS[kind](rng, x.shape)
        dy = rng.normal(size=x.shape)
        np.testing.assert_array_equal(step_gradients.gradient(x, program, dy), dy)


def test_lists_of_each_image():
    rng = np.random.default_rng(3)
    kinds = [kind for kind in KINDS if kind not in ("posterize", "equalize")]
    for count in (0, 1, 4):
        shape = (1, *rng.integers(2, 12, 2), 3)
        images = [
            in_turn([step("add", 1, where=False), *(KINDS[kind](rng, shape) for kind in rng.choice(kinds, own))])
            for own in rng.integers(count + 1, size=5)
        ]
        check(rng.random((5, *shape[1:])) * 255, side_by_side(images), rng, 1e-6)


def test_bits_do_not_depend_on_threads_or_neighbours():
    rng = np.random.default_rng(4)
    shape = (1, 30, 41, 3)
    program = side_by_side([in_turn([kind(rng, shape) for kind in KINDS.values()]) for _ in range(3)])
    x, dy = (rng.normal(size=(3, *shape[1:])) * 255 for _ in range(2))
    threads, found = config.num_threads(), []
    try:
        for count in (1, 3):
            config.set_num_threads(count)
            found.append(step_gradients.gradient(x, program, dy))
    finally:
        config.set_num_threads(threads)
    np.testing.assert_array_equal(*found)
    alone = steps.Steps(program.rows[1:2], program.extra)
    np.testing.assert_array_equal(step_gradients.gradient(x[1:2], alone, dy[1:2]), found[0][1:2])
