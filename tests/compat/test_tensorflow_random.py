"""`tf.random`."""

import numpy as np


def test_numbers_of_the_gamma_distribution_have_the_axes_of_alpha_behind(tf):
    call = lambda: tf.random.gamma(shape=[2, 3], alpha=[0.5, 2.0, 4.0])  # noqa: E731
    assert call().shape == tf.function(call)().shape == (2, 3, 3)
    assert tf.random.gamma([4], 2.0).shape == (4,)
    x = tf.random.gamma([4000], [1.0, 9.0], seed=1)
    np.testing.assert_allclose(np.mean(x, axis=0), [1, 9], rtol=0.1)
    assert abs(np.corrcoef(x.T)[0, 1]) < 0.1
