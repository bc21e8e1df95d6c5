"""Names of tensorflow that take and put elements, and shapes that are calculated with."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, function
from pydtconv.compat.tensorflow import functions, image
from pydtconv.compat.tensorflow import gather_scatter as gs
from pydtconv.compat.tensorflow.arrays import array


def slope_of(call, x):
    """The gradient of the sum of call(x)."""
    x = array(x)
    with GradientTape() as tape:
        tape.watch(x)
        total = keras.ops.sum(call(x))
    return tape.gradient(total, x)


def values(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def test_shapes_can_be_calculated_with(tf):
    x = tf.ones((3, 4, 5, 2))
    extents = tf.shape(x)
    np.testing.assert_array_equal(extents[1:3] * 2, [8, 10])
    np.testing.assert_array_equal(2 * extents[:1] + extents[1:2], [10])
    np.testing.assert_array_equal(extents[:2] // 2, [1, 2])
    assert tf.image.resize(x, tf.shape(x)[1:3] * 2).shape == (3, 8, 10, 2)
    assert tf.keras.backend.shape(x)[1:3] == (4, 5)
    assert tf.reshape(x, (extents[0], -1)).shape == (3, 40)


def test_masks_of_several_axes_choose_elements():
    x, mask = values(3, 4, 5), np.arange(12).reshape(3, 4) % 3 == 0
    np.testing.assert_array_equal(gs.boolean_mask(x, mask), x[mask])
    np.testing.assert_array_equal(gs.boolean_mask(x, [True, False, True, False], axis=1), x[:, ::2])
    np.testing.assert_array_equal(
        slope_of(lambda x: gs.boolean_mask(x, mask), x), np.where(mask[..., None], x * 0 + 1, 0)
    )
    with pytest.raises(
        ValueError, match=r"boolean_mask: mask: expected extents of \(3, 4, 5\) from axis 0 on, got \(2,\)"
    ):
        gs.boolean_mask(x, [True, False])


def test_each_sample_is_gathered_by_its_own_indices():
    x = values(3, 4, 5)
    for index in np.array([[0, 3], [1, 1], [2, 0]]), np.array([[[0], [3]], [[1], [1]], [[2], [0]]]):
        expected = np.stack([sample[places_] for sample, places_ in zip(x, index, strict=True)])
        np.testing.assert_array_equal(gs.gather(x, index, axis=1, batch_dims=1, name="n"), expected)
        np.testing.assert_array_equal(function(lambda x, i: gs.gather(x, i, batch_dims=1))(x, index), expected)
    inputs, index = [keras.Input((4, 5)), keras.Input((2,), dtype="int32")], np.array([[0, 3], [1, 1], [2, 0]], "int32")
    model = keras.Model(inputs, gs.gather(*inputs, axis=1, batch_dims=1))
    np.testing.assert_array_equal(model.predict([x, index], verbose=0), x[np.arange(3)[:, None], index])


def test_elements_are_gathered_and_scattered_by_coordinates():
    x, index = values(3, 4, 5), np.array([[2, 1], [0, 3], [2, 1]])
    np.testing.assert_array_equal(gs.gather_nd(x, index), x[[2, 0, 2], [1, 3, 1]])
    np.testing.assert_array_equal(gs.gather_nd(x, [[1]]), x[[1]])
    expected = np.zeros_like(x)
    np.add.at(expected, ([2, 0, 2], [1, 3, 1]), 1)
    np.testing.assert_array_equal(slope_of(lambda x: gs.gather_nd(x, index), x), expected)
    np.testing.assert_array_equal(gs.scatter_nd([[1], [3], [1]], np.float32([9, 8, 1]), [5]), [0, 10, 0, 8, 0])
    np.testing.assert_array_equal(gs.tensor_scatter_nd_update(x[0, 0], [[4]], np.float32([7]))[3:], [x[0, 0, 3], 7])
    np.testing.assert_array_equal(gs.sequence_mask([1, 3], dtype="float32"), [[1, 0, 0], [1, 1, 1]])


def test_sums_and_products_without_the_element_itself():
    table, x = functions.math_table(), values(2, 5)
    np.testing.assert_allclose(table["cumsum"](x, 1, exclusive=True), np.cumsum(x, 1) - x, atol=1e-6)
    products = np.concatenate([np.ones((2, 1)), np.cumprod(x, 1)[:, :-1]], axis=1)
    np.testing.assert_allclose(table["cumprod"](x, axis=-1, exclusive=True), products, rtol=1e-5)
    back = np.cumsum(x[:, ::-1], 1)[:, ::-1] - x
    np.testing.assert_allclose(table["cumsum"](x, 1, exclusive=True, reverse=True), back, atol=1e-6)


def test_descending_order_of_unsigned_integers():
    found = functions.argsort(np.array([0, 255, 3], "uint8"), direction="DESCENDING")
    np.testing.assert_array_equal(found, [1, 2, 0])


@pytest.mark.parametrize("change", ["resize_with_crop_or_pad", "rot90", "adjust_saturation", "adjust_hue"])
def test_changed_images_have_gradients(change):
    arguments = {
        "resize_with_crop_or_pad": (6, 3),
        "rot90": (np.array(3),),
        "adjust_saturation": (0.5,),
        "adjust_hue": (0.1,),
    }
    call = lambda x: getattr(image, change)(x, *arguments[change])  # noqa: E731
    x = np.random.default_rng(0).uniform(0.2, 0.8, (4, 4, 3)).astype("float32")
    step = np.zeros_like(x)
    step[1, 2, 1] = 1e-2
    expected = (np.sum(np.asarray(call(array(x + step)))) - np.sum(np.asarray(call(array(x - step))))) / 2e-2
    np.testing.assert_allclose(slope_of(call, x)[1, 2, 1], expected, rtol=1e-2, atol=1e-3)


def test_extents_may_have_been_calculated(tf):
    n = tf.math.ceil(7 / 2**1)
    assert tf.tile(tf.ones((1, 2)), [n, 1]).shape == tf.reshape(tf.ones(8), [n, 2]).shape == (4, 2)
    assert tf.strings.reduce_join(["a", "b"]).numpy().decode("utf-8") == "ab"
