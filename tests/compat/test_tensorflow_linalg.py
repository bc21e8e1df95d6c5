"""`tf.linalg`."""

import numpy as np


def test_matrices(tf):
    x = np.arange(1, 19, dtype="float32").reshape(2, 3, 3)
    np.testing.assert_array_equal(tf.linalg.band_part(x, -1, 0), np.tril(x))
    np.testing.assert_array_equal(tf.linalg.band_part(x, 0, 1), np.triu(x) - np.triu(x, 2))
    np.testing.assert_array_equal(tf.linalg.diag_part(x), [[1, 5, 9], [10, 14, 18]])
    np.testing.assert_array_equal(tf.linalg.diag(x[0]), [np.diag(row) for row in x[0]])
    np.testing.assert_array_equal(tf.linalg.set_diag(x, x[:, 0]) - x, [np.diag(m[0] - np.diag(m)) for m in x])
    np.testing.assert_array_equal(tf.eye(2, batch_shape=[3]), np.stack([np.eye(2)] * 3))
    np.testing.assert_allclose(tf.norm(x, ord=1, axis=-1), x.sum(-1))
