"""`tf.nn` and losses by tensorflow's names."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape
from pydtconv.compat.tensorflow import functions


def test_crossentropy_has_its_slope_at_zero_and_is_precise():
    x = np.array([0, 0, 200, -200, 20, -20], "float32")
    y = np.array([0, 1, 1, 0, 1, 0], "float32")
    with GradientTape() as tape:
        logits = functions.Variable(x)
        losses = functions.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
    np.testing.assert_allclose(losses, [np.log(2), np.log(2), 0, 0, *[np.exp(-20.0)] * 2], rtol=1e-5)
    with GradientTape() as tape:
        loss = functions.sigmoid_cross_entropy_with_logits(labels=y[:2], logits=logits[:2])
    np.testing.assert_allclose(np.asarray(tape.gradient(loss, logits))[:2], [0.5, -0.5], rtol=1e-6)


def test_convolutions_and_pooling_of_tf_nn():
    table, rng = functions.nn_table(), np.random.default_rng(0)
    x, w = rng.normal(size=(2, 6, 6, 3)).astype("float32"), rng.normal(size=(3, 3, 3, 4)).astype("float32")
    np.testing.assert_array_equal(table["conv2d"](x, w, [1, 2, 2, 1], "SAME"), keras.ops.conv(x, w, 2, "same"))
    np.testing.assert_allclose(
        table["avg_pool2d"](x, ksize=2, strides=2, padding="VALID"),
        x.reshape(2, 3, 2, 3, 2, 3).mean((2, 4)), rtol=1e-5, atol=1e-6,
    )  # fmt: skip
    np.testing.assert_array_equal(table["max_pool2d"](x, [1, 3, 3, 1], 3, "VALID")[0, 0, 0], x[0, :3, :3].max((0, 1)))
    assert float(table["compute_average_loss"](x[:, 0, 0, 0] * 0 + 3, global_batch_size=4)) == 1.5
    first, y = x.transpose(0, 3, 1, 2), np.asarray(table["conv2d"](x, w, [1, 2, 2, 1], "SAME", dilations=1))
    found = table["conv2d"](first, w, [1, 1, 2, 2], "SAME", data_format="NCHW")
    np.testing.assert_allclose(found, y.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-6)
    biased = table["bias_add"](first, np.arange(3, dtype="float32"), "NCHW")
    np.testing.assert_array_equal(biased, first + np.arange(3, dtype="float32")[:, None, None])
    with pytest.raises(NotImplementedError, match=r"padding: expected 'SAME' or 'VALID', got .*: use tf.pad"):
        table["max_pool"](x, 2, 1, [[0, 0], [1, 1], [1, 1], [0, 0]])
    with pytest.raises(ValueError, match=r"data_format: expected one of .*, NHWC, .*, got 'HWCN'"):
        table["max_pool"](x, 2, 2, "SAME", "HWCN")


def test_losses_have_their_old_short_names(tf):
    y, p = np.ones((2, 3), "float32"), np.zeros((2, 3), "float32")
    np.testing.assert_array_equal(tf.keras.losses.mse(y, p), [1, 1])
    assert tf.keras.metrics.MAE is keras.losses.mean_absolute_error
    loss = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)
    np.testing.assert_array_equal(loss(y, p), [1, 1])
