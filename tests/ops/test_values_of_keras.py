"""Values at the edges of functions and layers, as Keras gives them on its backends (recorded from Keras 3.15)."""

import numpy as np
import pytest

from pydtconv import Input, Sequential, activations, layers, ops, random

X = np.array([-1, 0.5, 1, 1.5, 2, 7], "float32")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"threshold": 1.0}, [0, 0, 0, 1.5, 2, 7]),
        ({"threshold": 1.0, "negative_slope": 0.1}, [-0.2, -0.05, 0, 1.5, 2, 7]),
        ({"threshold": 3.0, "max_value": 2.0}, [0, 0, 0, 0, 0, 2]),
    ],
)
def test_relu_at_its_threshold(given, expected):
    np.testing.assert_allclose(activations.relu(X, **given), expected, rtol=1e-6)
    np.testing.assert_allclose(layers.ReLU(**given)(X), expected, rtol=1e-6)


def test_labels_of_the_class_of_the_blank():
    logits = np.random.RandomState(0).randn(2, 8, 5).astype("float32")
    labels = np.array([[1, 0, 2], [3, 2, 0]], "int32")
    found = ops.ctc_loss(labels, logits, np.array([3, 2], "int32"), np.array([8, 7], "int32"))
    np.testing.assert_allclose(found, [9.216907, 5.914409], rtol=1e-5)


def test_every_nan_is_another_value():
    values, places, counts = ops.unique(np.array([1, np.nan, 2, np.nan, 1]), return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values, [1, 2, np.nan, np.nan])
    assert (places.tolist(), counts.tolist()) == ([0, 2, 1, 3, 0], [2, 1, 1, 1])


def test_what_fills_up_different_elements():
    x = np.array([3, 2, 1, 1, 4])
    values, places, counts = ops.unique(x, return_index=True, return_counts=True, size=6)
    assert (values.tolist(), places.tolist()) == ([1, 2, 3, 4, 1, 1], [2, 1, 0, 4, 2, 2])  # of the first one, as on JAX
    assert counts.tolist() == [2, 1, 1, 1, 0, 0]


def test_nothing_is_left_by_a_rate_of_one():
    np.testing.assert_array_equal(random.dropout(X, 1.0, seed=0), np.zeros_like(X))


def test_istft_without_a_window_adds_frames_up():
    random = np.random.RandomState(5)
    real, imag = random.rand(2, 5, 9).astype("float32"), random.rand(2, 5, 9).astype("float32")
    found = ops.istft((real, imag), 12, 4, 16, window=None)
    wanted = [-0.0013, -0.4426, 0.0901, -0.0596, 0.3734, -0.4447, 0.0297, 0.2786]
    np.testing.assert_allclose(found[0, :8], wanted, atol=1e-4)


def test_classes_of_three_axes_are_gathered_along_axis_1():
    x = np.array([[[1, 2], [0, 1]], [[3, 0], [2, 2]]], "int32")
    found = np.asarray(layers.CategoryEncoding(4, output_mode="multi_hot")(x))
    np.testing.assert_array_equal(found[0], [[1, 1, 0, 0], [0, 1, 1, 0]])
    found = np.asarray(layers.Discretization([0.5, 1.5], output_mode="count")(x.astype("float32")))
    np.testing.assert_array_equal(found[1], [[0, 0, 2], [1, 0, 1]])


def test_a_scale_of_zero_erases_nothing():
    x = np.ones((2, 6, 6, 1), "float32")
    np.testing.assert_array_equal(layers.RandomErasing(1.0, scale=0.0, fill_value=5.0)(x, training=True), x)


def test_pipelines_hand_masks_on():
    x, mask = np.arange(6, dtype="float32").reshape(1, 3, 2), np.array([[True, False, True]])
    pipeline = layers.Pipeline([layers.GlobalAveragePooling1D()])
    np.testing.assert_allclose(pipeline(x, mask=mask), layers.GlobalAveragePooling1D()(x, mask=mask))


def test_bfloat16_on_a_device_is_refused_by_name(monkeypatch):
    model = Sequential([Input((3,)), layers.Dense(2, dtype="mixed_bfloat16")])
    from pydtconv import config

    before = config.device()
    config.set_device("host")
    try:
        with pytest.raises(NotImplementedError, match=r"device host.*expected float32 or float64, got bfloat16"):
            model.predict(np.ones((2, 3), "float32"), verbose=0)
    finally:
        config.set_device(before)
