"""Old names of layers, losses and helpers beside their meaning."""

import numpy as np
import pytest

import pydtconv
from pydtconv.compat.keras2 import extra

X = np.array([[-1.0, 0.5, 1.0, 2.0]], "float32")


def test_thresholded_relu_is_zero_at_its_threshold(tf, tmp_path):
    layer = tf.keras.layers.ThresholdedReLU(theta=1.0)
    np.testing.assert_array_equal(layer(X), [[0, 0, 0, 2]])
    assert extra.ThresholdedReLU.from_config(layer.get_config()).theta == 1
    model = tf.keras.Sequential([tf.keras.Input((4,)), layer])
    model.save(tmp_path / "m.keras")
    again = tf.keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict(X, verbose=0), [[0, 0, 0, 2]])


def test_strings_of_keras_2_name_losses_and_initializers(tf):
    for old, new in (("kullback_leibler_divergence", "kl_divergence"), ("cosine_proximity", "cosine_similarity")):
        assert tf.keras.losses.get(old) is tf.keras.losses.get(new) is getattr(tf.keras.losses, old)
    layer = tf.keras.layers.Dense(2, kernel_initializer="one", bias_initializer="zero")
    np.testing.assert_allclose(layer(X), [[2.5, 2.5]])


def test_extents_of_convolutions():
    for size, padding, stride, dilation in (
        (3, "valid", 1, 1),
        (3, "same", 2, 1),
        (3, "valid", 1, 2),
        (5, "valid", 3, 1),
    ):
        layer = pydtconv.layers.Conv1D(1, size, stride, padding, dilation_rate=dilation)
        expected = layer(pydtconv.Input((17, 1))).shape[1]
        assert extra.conv_output_length(17, size, padding, stride, dilation) == expected
    assert extra.conv_output_length(None, 3, "same", 1) is extra.conv_input_length(None, 3, "same", 1) is None
    assert extra.conv_input_length(15, 3, "valid", 1) == 17
    assert extra.normalize_tuple(3, 2, "x") == extra.normalize_tuple([3, 3], 2, "x") == (3, 3)
    with pytest.raises(ValueError, match="expected an integer or 2"):
        extra.normalize_tuple((1, 2, 3), 2, "x")
    assert extra.normalize_padding("SAME") == "same"
    assert extra.normalize_data_format(None) == "channels_last"


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(
    ("size", "stride", "dilation", "more"), [(3, 1, 1, None), (3, 2, 1, 1), (2, 3, 1, None), (3, 1, 2, None)]
)
def test_extents_of_transposed_convolutions(size, stride, dilation, more, padding):
    layer = pydtconv.layers.Conv1DTranspose(1, size, stride, padding, output_padding=more, dilation_rate=dilation)
    expected = layer(pydtconv.Input((9, 1))).shape[1]
    assert extra.deconv_output_length(9, size, padding, more, stride, dilation) == expected
    assert extra.deconv_length(9, stride, size, padding, more, dilation) == expected
    assert extra.deconv_length(None, 1, 3, "full") is None


def test_arguments_and_lists():
    assert extra.has_arg(extra.deconv_length, "stride")
    assert not extra.has_arg(lambda x, **kwargs: x, "kwargs")
    assert extra.has_arg(lambda x, **kwargs: x, "y", accept_all=True)
    assert extra.to_list(3) == extra.to_list([3]) == [3]
    assert extra.unpack_singleton([3]) == 3
    assert extra.unpack_singleton((3, 4)) == (3, 4)


def test_classes_and_shapes():
    np.testing.assert_array_equal(extra.probas_to_classes([[0.1, 0.9], [0.8, 0.2]]), [1, 0])
    np.testing.assert_array_equal(extra.probas_to_classes([[0.1], [0.8]]), [[0], [1]])
    assert extra.obtain_input_shape(None, 32, 8) == (32, 32, 3)
    assert extra.obtain_input_shape((40, 40, 1), 32, 8) == (40, 40, 1)
    assert extra.obtain_input_shape(None, 32, 8, require_flatten=False) == (None, None, 3)
    with pytest.raises(ValueError, match="expected 8 or more"):
        extra.obtain_input_shape((4, 4, 3), 32, 8)
