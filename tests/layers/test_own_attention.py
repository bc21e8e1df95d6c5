"""Subclasses of MultiHeadAttention that compute the attention themselves, as Keras's layer lets them."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


class AsKeras(layers.MultiHeadAttention):
    """Attention by the names that Keras's layer has inside, with a temperature that is trained."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.tau = keras.Variable(float(self._key_dim) ** 0.5)

    def _compute_attention(self, query, key, value, attention_mask=None, training=None):
        scores = ops.einsum(self._dot_product_equation, key, ops.multiply(query, 1.0 / self.tau))
        scores = self._masked_softmax(scores, attention_mask)
        kept = self._dropout_layer(scores, training=training)
        return ops.einsum(self._combine_equation, kept, value), scores


class Louder(layers.MultiHeadAttention):
    def _compute_attention(self, query, key, value, attention_mask=None, training=None, return_attention_scores=False):
        y, scores = super()._compute_attention(query, key, value, attention_mask, training)
        return 2.0 * y, scores


def test_a_subclass_computes_the_attention():
    x = np.random.default_rng(0).standard_normal((2, 5, 6)).astype("float32")
    mask = np.tril(np.ones((1, 5, 5), bool), 1)
    own, plain, louder = (kind(num_heads=2, key_dim=4) for kind in (AsKeras, layers.MultiHeadAttention, Louder))
    for layer in own, plain, louder:
        layer.build(x.shape, x.shape)
    weights = plain.get_weights()
    own.set_weights([np.float32(2.0), *weights] if own.weights[0] is own.tau else [*weights, np.float32(2.0)])
    louder.set_weights(weights)
    for asked in {"attention_mask": mask}, {"use_causal_mask": True}, {}:
        expected, scores = plain(x, x, return_attention_scores=True, **asked)
        found, of_own = own(x, x, return_attention_scores=True, **asked)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(of_own, scores, atol=1e-6)
        bias = plain.output_dense.bias.numpy()
        np.testing.assert_allclose(louder(x, x, **asked) - bias, 2 * (np.asarray(expected) - bias), atol=1e-5)
    assert len(own.trainable_weights) == 9


@pytest.mark.parametrize("name", ["Attention", "AdditiveAttention"])
@pytest.mark.parametrize("axes", [(2,), (2, 3)])
@pytest.mark.parametrize("causal", [False, True])
def test_axes_before_the_steps_are_batches(name, axes, causal):
    """As in Keras: (n, ..., steps, features)."""
    rng = np.random.default_rng(1)
    query, value = (rng.standard_normal((2, *axes, n, 3)).astype("float32") for n in (5, 4))
    layer = getattr(layers, name)(use_scale=False)
    y, scores = layer([query, value], return_attention_scores=True, use_causal_mask=causal)
    np.testing.assert_allclose(layer([query, value], use_causal_mask=causal), y, rtol=1e-6)
    for i in range(2):
        flat = [x[i].reshape(-1, *x.shape[-2:]) for x in (query, value)]
        expected = layer(flat, use_causal_mask=causal)
        np.testing.assert_allclose(y[i].reshape(expected.shape), expected, rtol=1e-5, atol=1e-6)
    assert scores.shape == (2, *axes, 5, 4)
    theirs = getattr(import_keras().layers, name)(use_scale=False)([query, value], use_causal_mask=causal)
    np.testing.assert_allclose(y, np.asarray(theirs.detach() if hasattr(theirs, "detach") else theirs), atol=1e-5)
