"""Functions of symbolic tensors whose extents are not known: shapes as Keras infers them."""

import numpy as np
import pytest

from pydtconv import Input, KerasTensor, Model, ops

TWO = """
    add arctan2 divide divide_no_nan equal floor_divide fmax fmin fmod gcd greater greater_equal heaviside
    hypot isclose lcm less less_equal logaddexp logical_and logical_or logical_xor maximum minimum mod multiply
    nextafter not_equal power subtract true_divide
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((None, 3), (2, None), (2, 3)),
        ((None, 3, None), (2, None, None), (2, 3, None)),
        ((None, None), (None, 3), (None, 3)),
        ((None, 1, 5), (None, 4, None), (None, 4, 5)),
    ],
)
def test_broadcasting(first, second, expected):
    for name in TWO:
        dtype = "int32" if name in ("gcd", "lcm") else "float32"
        assert getattr(ops, name)(KerasTensor(first, dtype), KerasTensor(second, dtype)).shape == expected, name
    chosen = ops.where(KerasTensor(first, "bool"), KerasTensor(first), KerasTensor(second))
    assert chosen.shape == expected


def test_what_cannot_be_broadcast_is_refused_with_the_extents_that_are_not_known():
    with pytest.raises(ValueError, match=r"\(None, 3\), \(2, 4\)"):
        ops.add(KerasTensor((None, 3)), KerasTensor((2, 4)))


def test_a_model_broadcasts_what_comes():
    a, b = Input((None, 3)), Input((4, None))
    model = Model([a, b], ops.add(a, b))
    x, y = np.ones((2, 4, 3), "float32"), np.ones((2, 4, 1), "float32")
    np.testing.assert_array_equal(model([x, y]), x + y)


def test_images_are_padded_and_cut_to_a_size():
    x = KerasTensor((None, None, None, 3))
    sizes = {"target_height": 20, "target_width": 30}
    assert ops.image.pad_images(x, 2, 3, **sizes).shape == (None, 20, 30, 3)
    assert ops.image.crop_images(x, 2, 3, **sizes).shape == (None, 20, 30, 3)
    assert ops.image.pad_images(x, 2, 3, 4, 5).shape == x.shape
    model = Model(inputs := Input((None, None, 1)), ops.image.pad_images(inputs, 1, 0, target_height=5, target_width=4))
    found = model(np.ones((1, 3, 2, 1), "float32"))
    np.testing.assert_array_equal(found[0, ..., 0], np.pad(np.ones((3, 2)), ((1, 1), (0, 2))))


def test_sorted_elements_are_a_vector():
    assert ops.sort(KerasTensor((2, 3)), axis=None).shape == ops.argsort(KerasTensor((2, 3)), axis=None).shape == (6,)
    x = np.array([[3.0, 1], [2, 5]], "float32")
    model = Model(inputs := Input((2,)), ops.sort(inputs, axis=None))
    np.testing.assert_array_equal(model(x), [1, 2, 3, 5])


def test_names_of_padding_in_capitals():
    random = np.random.RandomState(0)
    x, kernel = random.rand(1, 6, 6, 2).astype("float32"), random.rand(3, 3, 2, 2).astype("float32")
    for name in ("conv", "conv_transpose", "depthwise_conv"):
        for padding in ("valid", "same"):
            expected = getattr(ops, name)(x, kernel, 1, padding)
            np.testing.assert_array_equal(getattr(ops, name)(x, kernel, 1, padding.upper()), expected)
    for name in ("max_pool", "average_pool"):
        np.testing.assert_array_equal(getattr(ops, name)(x, 4, 2, "SAME"), getattr(ops, name)(x, 4, 2, "same"))
