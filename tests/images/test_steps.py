"""Lists of steps, beside NumPy in float64."""

import numpy as np
import pytest

from pydtconv import config
from pydtconv.images import steps
from pydtconv.images.steps import FILL_MODES, Steps, affine, change, in_turn, side_by_side, step
from tests.images import reference
from tests.images.cases import KINDS, RANGE, shape_of


def test_a_case_for_each_kind():
    assert set(KINDS) == set(reference.STEPS) == set(steps._KINDS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_beside_numpy(kind, dtype):
    rng = np.random.default_rng(len(kind))
    for _ in range(25):
        shape = shape_of(rng, [kind])
        x, program = (rng.random(shape) * 255).astype(dtype), KINDS[kind](rng, shape)
        before = x.copy()
        y = change(x, program)
        assert y.dtype == x.dtype
        assert np.array_equal(x, before)
        expected = reference.changed(x, program)
        if dtype == "float32" and kind in ("posterize", "equalize"):  # a rounding may be another value
            assert (abs(y - expected) > 1e-2).mean() <= 0.02 + 2 / y.size
        else:
            np.testing.assert_allclose(y, expected, rtol=0, atol=2e-2 if dtype == "float32" else 1e-9)


def test_lists_of_each_image_one_behind_the_other():
    rng = np.random.default_rng(3)
    for count in (0, 1, 2, 3, 5, 8):
        shape, images = (1, *rng.integers(2, 30, 2), 3), []
        for _ in range(6):
            own = rng.integers(count + 1)
            chosen = [step("add", 1, where=False), *(KINDS[kind](rng, shape) for kind in rng.choice([*KINDS], own))]
            images.append(in_turn(chosen))
        program, x = side_by_side(images), rng.random((6, *shape[1:])) * 255
        found, expected = change(x, program), reference.changed(x, program)
        # a value at a border between two may fall to another side
        assert (abs(found - expected) > 1e-6).mean() < 1e-3


def test_bits_do_not_depend_on_threads_or_neighbours():
    rng = np.random.default_rng(4)
    shape = (1, 30, 41, 3)
    program = side_by_side([in_turn([kind(rng, shape) for kind in KINDS.values()]) for _ in range(5)])
    x = rng.random((5, *shape[1:])).astype("float32") * 255
    threads = config.num_threads()
    try:
        found = []
        for count in (1, 2, 4):
            config.set_num_threads(count)
            found.append(change(x, program))
    finally:
        config.set_num_threads(threads)
    alone = change(x[2:3], Steps(program.rows[2:3], program.extra))
    assert all(np.array_equal(found[0], each) for each in found)
    assert np.array_equal(found[0][2:3], alone)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("modes", [(a, b) for a in FILL_MODES for b in FILL_MODES if b != "wrap"])
def test_joined_transforms_of_whole_pixels_are_as_if_apart(modes, order):
    """Shifts and mirrors need no interpolation: one resampling leaves the same pixels, outside, too."""
    rng = np.random.default_rng(5)
    x = rng.random((8, 9, 12, 3))
    both = []
    for mode in modes:
        t = np.zeros((8, 8))
        t[:, 0], t[:, 4] = rng.choice([-1, 1], 8), rng.choice([-1, 1], 8)
        t[:, 2], t[:, 5] = rng.integers(-15, 25, 8), rng.integers(-15, 25, 8)
        both.append(affine(8, t, order, mode, 3.0))
    apart = in_turn(both)
    joined = steps.joined(apart)
    assert joined.rows[:, 1, steps._JOINED].all()
    np.testing.assert_allclose(change(x, joined), change(x, apart), rtol=0, atol=1e-12)


def test_joined_transforms_are_the_same_to_interpolation():
    """Of an image that bilinear interpolation does not change, inside and outside."""
    y, x = np.mgrid[:40, :50]
    image = np.stack([2.0 * x + y, 3.0 * y - x, x * 0 + 7.0], -1)[None]
    near = [[0.9, 0.1, 2.0, -0.1, 0.95, 3.0, 0, 0], [0.8, 0, 4.3, 0, 0.8, 3.2, 0, 0], [1, 0, 0.4, 0, 1, 0.3, 0, 0]]
    apart = in_turn([affine(1, np.array([t]), 1, "constant", 9.0) for t in near])
    np.testing.assert_allclose(change(image, steps.joined(apart)), change(image, apart), rtol=0, atol=1e-9)


def test_wrap_and_other_orders_stay_apart():
    identity = np.eye(3).reshape(-1)[:8][None]
    kinds = [(1, "reflect"), (1, "wrap"), (1, "nearest"), (0, "nearest"), (0, "constant")]
    rows = steps.joined(in_turn([affine(1, identity, order, mode, 0) for order, mode in kinds])).rows
    assert rows[0, :, steps._JOINED].tolist() == [0, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("program", "channels"),
    [
        (step("hue", 1, 0.5, 0, 1), 1),
        (step("gray", 1), 4),
        (step("affine", 1, 2, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0), 3),
        (step("affine", 1, 1, 5, 0, 1, 0, 0, 0, 1, 0, 0, 0), 3),
        (step("affine", 1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1), 3),
        (step("places", 1, 1, 0, 0, 0, extra=np.zeros(2 * 5 * 6 - 1)), 3),
        (step("erase", 1, 0, 0, 6, 2, -1, 0, 0, 1), 3),
        (step("erase", 1, 0, 0, 2, 2, 0, 0, 0, 1, extra=np.zeros(11)), 3),
        (step("erase", 1, 0.5, 0, 2, 2, -1, 0, 0, 1), 3),
        (step("blur", 1, 3, 0, 3, 1, 0, 1, extra=np.zeros(3)), 3),
        (step("equalize", 1, 256, 0, 0, 255, extra=np.zeros(256)), 3),
        (step("scale", 1, 0, extra=np.zeros(5)), 3),
        (step("posterize", 1, 9, 0, 1), 3),
    ],
)
def test_steps_that_do_not_fit_are_refused(program, channels):
    with pytest.raises(ValueError, match="contradict"):
        change(np.zeros((1, 5, 6, channels)), program)


def test_memory_that_is_too_small_is_refused():
    x = np.zeros((1, 5, 6, 3))
    with pytest.raises(ValueError, match="workspace"):
        change(x, step("invert", 1, 1), memory=np.zeros(100, np.uint8))


def test_images_without_pixels():
    assert change(np.zeros((0, 4, 5, 3)), step("invert", 0, 1)).shape == (0, 4, 5, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_outside_that_is_not_finite_stays_outside(value):
    x = np.arange(1.0, 17).reshape(1, 4, 4, 1)
    y = change(x, affine(1, np.array([[1.0, 0, 1, 0, 1, 0, 0, 0]]), 1, "constant", value))
    np.testing.assert_array_equal(y[..., :3, :], x[..., 1:, :])
    np.testing.assert_array_equal(y[..., 3, :], value)


def test_pixels_that_are_not_finite_do_not_go_outside():
    x = np.ones((1, 4, 4, 1))
    x[:, :, 0] = np.inf
    y = change(x, affine(1, np.array([[1.0, 0, -2, 0, 1, 0, 0, 0]]), 1, "constant", 5.0))
    np.testing.assert_array_equal(y[0, :, :2, 0], 5.0)


def test_numbers_that_are_none_count_as_the_least_where_values_are_ranked():
    rng = np.random.default_rng(6)
    shape = (1, 9, 8, 3)
    x = rng.random(shape) * 255
    x[0, 2:4], least = np.nan, np.where(np.arange(9)[:, None, None] // 2 == 1, 0.0, x[0])[None]
    equalized = [change(each, KINDS["equalize"](rng, shape)) for each in (x, least)]
    np.testing.assert_array_equal(*equalized)


def test_means_of_more_channels_than_the_stack_of_a_thread_has_room_for():
    x, threads = np.random.default_rng(7).random((4, 2, 2, 300_000)), config.num_threads()
    try:
        config.set_num_threads(2)
        found = change(x, step("contrast", 4, 0.0, *RANGE))
    finally:
        config.set_num_threads(threads)
    np.testing.assert_allclose(found, np.broadcast_to(x.mean((1, 2), keepdims=True), x.shape))
