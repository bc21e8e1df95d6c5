"""Extents that are not known yet, in functional models: what is computed of them is a value when the model runs."""

import numpy as np
import pytest


def test_groups_of_a_batch_whose_size_is_open(tf):
    """The deviation over groups of a batch, as discriminators of GANs have it."""
    x = tf.keras.Input((4, 4, 3))
    n, h, w, c = tf.shape(x)
    group = tf.minimum(4, n)
    y = tf.reshape(x, [group, -1, h, w, c])
    _, variance = tf.nn.moments(y, axes=(0), keepdims=False)
    deviation = tf.reduce_mean(tf.sqrt(variance), axis=[1, 2, 3], keepdims=True)
    model = tf.keras.Model(x, tf.concat([x, tf.tile(deviation, [group, h, w, 1])], axis=-1))
    for count in (8, 2):
        batch = np.random.default_rng(0).normal(size=(count, 4, 4, 3)).astype("float32")
        groups = batch.reshape(min(4, count), -1, 4, 4, 3)
        expected = np.tile(groups.std(0).mean((1, 2, 3), keepdims=True), (min(4, count), 4, 4, 1))
        np.testing.assert_allclose(model.predict(batch, verbose=0)[..., 3:], expected, rtol=1e-5)


OF_EXTENTS = {
    "sum": lambda tf, x, n: x * tf.cast(n, tf.float32) + tf.cast(n // 2 * 3 - 1, "float32") / 2,
    "reflected": lambda tf, x, n: tf.cast(7 - n, "float32") * x,
    "zeros": lambda tf, x, n: tf.zeros((n, 3)) + x,
    "range": lambda tf, x, n: x + tf.cast(tf.range(n)[:, None], "float32"),
    "concat": lambda tf, x, n: tf.reshape(x, tf.concat([tf.shape(x)[:1], [3, 1]], 0)),
    "stack": lambda tf, x, n: tf.ones(tf.stack([n, 3])) * x,
    "fill": lambda tf, x, n: tf.fill([n, 3], 2.0) * x,
    "eye": lambda tf, x, n: tf.matmul(tf.eye(n), x),
    "shape": lambda tf, x, n: tf.reshape(tf.reshape(x, [-1]), tf.shape(x)),
    "size": lambda tf, x, n: tf.reshape(x, (tf.size(x) // 3, 3)) * tf.cast(tf.size(x), "float32"),
    "one_hot": lambda tf, x, n: tf.matmul(tf.one_hot(tf.range(n), n), x),
    "unstack": lambda tf, x, n: tf.zeros(tf.unstack(tf.shape(x))) + x + tf.cast(tf.unstack(tf.shape(x))[0], "float32"),
    "unpacked": lambda tf, x, n: tf.reshape(x, [*tf.stack([n, 3]), 1]),
    "backend": lambda tf, x, n: x / tf.cast(tf.keras.backend.shape(x)[0], "float32"),
}


@pytest.mark.parametrize("name", OF_EXTENTS)
def test_what_is_computed_of_an_extent(tf, name):
    """A model gives what the function gives of the batch itself."""
    x, batch = tf.keras.Input((3,)), np.arange(15, dtype="float32").reshape(5, 3)
    model = tf.keras.Model(x, OF_EXTENTS[name](tf, x, tf.shape(x)[0]))
    expected = OF_EXTENTS[name](tf, tf.constant(batch), tf.shape(batch)[0])
    np.testing.assert_allclose(model.predict(batch, verbose=0), np.asarray(expected), rtol=1e-6)


def test_what_draws_draws_anew_in_each_call(tf):
    x, image = tf.keras.Input((3,)), tf.keras.Input((4, 4, 3))
    noise = tf.keras.Model(x, x + tf.random.normal((tf.shape(x)[0], 3)))
    brighter = tf.keras.Model(image, tf.image.random_brightness(image, 0.5))
    for model, shape in ((noise, (2, 3)), (brighter, (1, 4, 4, 3))):
        first, second = (model.predict(np.zeros(shape, "float32"), verbose=0) for _ in range(2))
        assert not np.array_equal(first, second)
