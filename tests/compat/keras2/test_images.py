"""Functions of `keras.preprocessing.image` that change one image, beside NumPy and SciPy."""

import numpy as np
import pytest

from pydtconv.compat.keras2 import images

X = np.random.default_rng(0).random((6, 7, 3))


def test_affine_transforms_are_those_of_scipy():
    ndimage = pytest.importorskip("scipy.ndimage")
    turn = np.deg2rad(20)
    matrix = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    whole = images.transform_matrix_offset_center(matrix @ np.diag([1.2, 0.8, 1]), 6, 7)
    whole = whole[[1, 0, 2]][:, [1, 0, 2]]  # Keras writes x, y
    found = images.apply_affine_transform(X, theta=20, zx=1.2, zy=0.8)
    for channel in range(3):
        expected = ndimage.affine_transform(X[..., channel], whole[:2, :2], whole[:2, 2], order=1, mode="nearest")
        np.testing.assert_allclose(found[..., channel], expected, rtol=1e-10)
    first = images.apply_affine_transform(np.moveaxis(X, -1, 0), 20, 0, 0, 0, 1.2, 0.8, 1, 2, 0)
    np.testing.assert_allclose(np.moveaxis(first, 0, -1), found)
    assert images.apply_affine_transform(X) is X


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_old_arguments_of_tables(tf, tmp_path):
    made = tf.keras.preprocessing.image.ImageDataGenerator()
    for i in range(3):
        tf.keras.utils.save_img(tmp_path / f"{i}.png", X)
    table = {"filename": [f"{i}.png" for i in range(3)], "class": [0.5, 1.5, 2.5]}
    settings = {"target_size": (4, 4), "shuffle": False}
    expected = next(made.flow_from_dataframe(table, tmp_path, class_mode="raw", **settings))
    old = {"class_mode": "other", "has_ext": True, "drop_duplicates": False, "sort": True}
    for found, value in zip(next(made.flow_from_dataframe(table, tmp_path, **old, **settings)), expected, strict=True):
        np.testing.assert_array_equal(found, value)
    with pytest.raises(ValueError, match="expected True"):
        made.flow_from_dataframe(table, tmp_path, has_ext=False)


def test_random_changes_follow_the_seed_and_their_range():
    for name, limit in (
        ("random_rotation", 30), ("random_shear", 20), ("random_zoom", (0.7, 1.3)), ("random_channel_shift", 0.2),
    ):  # fmt: skip
        change = getattr(images, name)
        axes = {} if name == "random_channel_shift" else {"row_axis": 0, "col_axis": 1, "channel_axis": 2}
        np.random.seed(3)  # noqa: NPY002
        first = change(X, limit, **axes)
        np.random.seed(3)  # noqa: NPY002
        np.testing.assert_array_equal(change(X, limit, **axes), first)
        assert (first != X).any()
        nothing = (1, 1) if name == "random_zoom" else 0
        np.testing.assert_array_equal(change(X, nothing, **axes), X)
    np.testing.assert_array_equal(images.random_shift(X, 0, 0, 0, 1, 2), X)
    for call in (lambda: images.random_zoom(X, 1), lambda: images.random_brightness(X, (1, 2, 3))):
        with pytest.raises((ValueError, TypeError)):
            call()


def test_small_changes():
    np.testing.assert_array_equal(images.flip_axis(X, 1), X[:, ::-1])
    np.testing.assert_allclose(images.apply_channel_shift(X, 0.3), np.clip(X + 0.3, X.min(), X.max()))
    bright = np.round(X * 200)
    np.testing.assert_allclose(images.apply_brightness_shift(bright, 0.5, scale=False), bright // 2, atol=1)
    assert images.random_brightness(bright, (0.5, 0.5), scale=False).shape == X.shape
