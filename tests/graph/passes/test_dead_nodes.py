"""What no result depends on is dropped, but for what changes state."""

import numpy as np
import pytest

from pydtconv import Model, layers


class Unread(Model):
    def __init__(self):
        super().__init__()
        self.normalization = layers.BatchNormalization(scale=False, center=False)
        self.dense = layers.Dense(2)

    def call(self, x, training=False):
        self.normalization(x, training=training)
        layers.ReLU()(x)
        return self.dense(x)


@pytest.mark.parametrize("eager", [False, True])
def test_moving_averages_of_a_normalization_whose_result_nobody_reads(eager):
    x = np.random.default_rng(0).standard_normal((8, 3)).astype("float32") + 1
    model = Unread()
    model.compile("sgd", "mse", run_eagerly=eager)
    model.fit(x, np.zeros((8, 2)), batch_size=8, verbose=0)
    np.testing.assert_allclose(model.normalization.moving_mean.numpy(), 0.01 * x.mean(0), rtol=1e-5)
    before = model.normalization.moving_mean.numpy()
    model.predict(x, verbose=0)
    np.testing.assert_array_equal(model.normalization.moving_mean.numpy(), before)
    if not eager:
        assert [node.op.name for node in model.plan(batch_size=8).graph.nodes].count("relu") == 0
