"""Functions of Keras's old backend: what losses of scripts are written in."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv.compat.keras_backend import table


@pytest.fixture
def K(tf):
    from tensorflow.keras import backend

    return backend


def test_a_loss_in_functions_of_the_backend_trains(K):
    def dice(y_true, y_pred):
        common = K.sum(K.flatten(y_true) * K.flatten(y_pred))
        return 1 - (2 * common + K.epsilon()) / (K.sum(y_true) + K.sum(y_pred) + K.epsilon())

    model = keras.Sequential([keras.Input((4, 4, 1)), keras.layers.Conv2D(1, 1, activation="sigmoid")])
    model.compile("sgd", dice)
    x = np.random.default_rng(0).random((4, 4, 4, 1)).astype("float32")
    y = (x > 0.5).astype("float32")
    p = np.asarray(model(x))
    assert model.train_on_batch(x, y) == pytest.approx(1 - 2 * (y * p).sum() / (y.sum() + p.sum()), rel=1e-4)
    K.set_value(model.optimizer.learning_rate, 0.25)
    assert K.get_value(model.optimizer.learning_rate) == 0.25


def test_functions_have_their_old_defaults():
    f, x = table(), np.arange(24, dtype="float32").reshape(2, 3, 4)
    expected = {
        "argmax": x.argmax(-1), "flatten": x.reshape(-1), "batch_flatten": x.reshape(2, 12), "shape": (2, 3, 4),
        "ndim": 3, "count_params": 24, "relu": x, "l2_normalize": x / np.linalg.norm(x),
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(f[name](x), value, rtol=1e-6, err_msg=name)
    assert f["dtype"](x) == "float32"
    np.testing.assert_array_equal(f["concatenate"]([x, x]), np.concatenate([x, x], -1))
    np.testing.assert_array_equal(f["dot"](x, np.ones((5, 4, 2), "float32")), np.dot(x, np.ones((5, 4, 2), "float32")))
    np.testing.assert_array_equal(f["switch"](x > 3, lambda: x, 0 * x), x * (x > 3))
    np.testing.assert_array_equal(f["permute_dimensions"](x, (0, 2, 1)), x.transpose(0, 2, 1))
    assert f["resize_images"](x[None], 2, 3).shape == (1, 4, 9, 4)


def test_losses_of_sequences_of_the_old_backend(tf):
    p, labels = np.full((1, 2, 3), 1 / 3, "float32"), np.array([[1]])
    found = tf.keras.backend.ctc_batch_cost(labels, p, np.array([[2]]), np.array([[1]]))
    np.testing.assert_allclose(found, [[-np.log(3 / 9)]], rtol=1e-4)  # 1 1, 1 blank, blank 1
    p = np.eye(3, dtype="float32")[None, [0, 0, 2, 1]]
    for greedy in True, False:
        (path,), score = tf.keras.backend.ctc_decode(p, [4], greedy=greedy, beam_width=5)
        assert path.tolist() == [[0, 1, -1, -1]]
        assert score.shape == (1, 1)
