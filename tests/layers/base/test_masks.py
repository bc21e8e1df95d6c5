"""Masks that go with tensors: where they come from, what they change, and what carries them on; against Keras."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops
from pydtconv.layers.base.masks import mask_of
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

NUMBERS = np.array([[3, 1, 0, 0], [2, 5, 4, 0], [1, 1, 1, 1]])


def attending(k, causal):
    """Two kinds of attention to numbers, with 0 for what is not there; the sum has no mask."""
    inputs = k.Input((4,), dtype="int32")
    x = k.layers.Embedding(6, 8, mask_zero=True)(inputs)
    y = k.layers.Attention(use_scale=True)([x, x], use_causal_mask=causal)
    z = k.layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=causal)
    return k.Model(inputs, k.layers.Dense(3)(k.layers.LayerNormalization()(x + y + z)))


def masked(k, _):
    """Predictions with a mask, which weighs the loss."""
    inputs = k.Input((4,), dtype="int32")
    x = k.layers.Embedding(6, 8, mask_zero=True)(inputs)
    return k.Model(inputs, k.layers.Dense(3)(k.layers.Dense(8, activation="gelu")(x)))


def equal_weights(ours, theirs, seed=0):
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=tuple(w.shape)).astype("float32") for w in theirs.weights]
    theirs.set_weights(values)
    ours.set_weights(values)


@pytest.mark.parametrize(("make", "causal"), [(attending, False), (attending, True), (masked, False)])
def test_predictions_and_ten_steps_equal_those_of_keras(make, causal):
    keras = import_keras("jax")
    ours, theirs = make(pydtconv, causal), make(keras, causal)
    assert [w.path.split("/")[-1] for w in ours.weights] == [w.path.split("/")[-1] for w in theirs.weights]
    equal_weights(ours, theirs)
    kept = NUMBERS != 0
    expected = theirs.predict(NUMBERS, verbose=0)
    np.testing.assert_allclose(ours.predict(NUMBERS, verbose=0)[kept], expected[kept], rtol=1e-4, atol=1e-4)
    targets = np.random.default_rng(1).integers(0, 3, (3, 4))
    # steps that are not there do not count: what a query that may attend to nothing learns is not the same everywhere
    weights = kept.astype("float32") if make is attending else None
    for k, model in ((pydtconv, ours), (keras, theirs)):
        model.compile(k.optimizers.SGD(0.02), k.losses.SparseCategoricalCrossentropy(from_logits=True))
    for step in range(10):
        losses = [float(model.train_on_batch(NUMBERS, targets, weights)) for model in (ours, theirs)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3), f"step {step}"


def test_what_carries_a_mask_on():
    with pydtconv.graph.Graph() as graph:
        x = graph.input("x", pydtconv.ops.Spec((2, 4), "float32"))
        y = layers.Embedding(5, 6, mask_zero=True)(x)
        mask = mask_of(y)
        assert mask is not None
        for layer in (layers.Dense(6), layers.LayerNormalization(), layers.Activation("gelu"), layers.Dropout(0.5)):
            assert mask_of(layer(y)) is mask
        assert mask_of(layers.Flatten()(y)) is None
        assert mask_of(layers.Add()([y, y])) is not None
        assert mask_of(layers.Add()([y, ops.square(y)])) is None
        assert mask_of(layers.Embedding(5, 6)(x)) is None


def test_a_layer_that_takes_mask_is_given_it():
    class Sum(layers.Layer):
        def call(self, inputs, mask=None):
            return ops.sum(ops.multiply(inputs, ops.expand_dims(mask, -1)), axis=1)

    x = np.array([[[1.0, 2.0], [7.0, 7.0], [3.0, 4.0]]], "float32")
    inputs = pydtconv.Input((3, 2))
    model = pydtconv.Model(inputs, Sum()(layers.Masking(7.0)(inputs)))
    np.testing.assert_array_equal(model.predict(x, verbose=0), [[4.0, 6.0]])


@pytest.mark.parametrize("axis", [-1, 1])
def test_batch_normalization_counts_the_steps_of_the_mask(axis):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4, 3, 2)) + 2
    x[0, 1:] = x[2, 2] = 0.0
    counts = (x != 0).any(-1)

    inputs = pydtconv.Input((3, 2), dtype="float64")
    layer = layers.BatchNormalization(axis=axis, momentum=0.75, dtype="float64")
    outputs = layer(layers.Masking(dtype="float64")(inputs))
    model = pydtconv.Model(inputs, layers.Flatten(dtype="float64")(outputs))
    layer.set_weights([np.array([1.5, 0.5, 2.0])[: len(w)] for w in layer.get_weights()])
    gamma, beta, moving_mean, moving_variance = (w[:, None] if axis == 1 else w for w in layer.get_weights())

    where = np.broadcast_to(counts[..., None], x.shape)
    axes = (0, 2) if axis == 1 else (0, 1)
    mean, variance = (f(x, axes, where=where, keepdims=True)[0] for f in (np.mean, np.var))
    expected = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    model.compile("sgd", "mse")
    loss = model.train_on_batch(x, np.zeros((4, 6)))
    assert loss == pytest.approx(np.mean(expected**2), rel=1e-5)
    for moved, before, found in zip(
        layer.get_weights()[2:], (moving_mean, moving_variance), (mean, variance), strict=True
    ):
        np.testing.assert_allclose(moved, (0.75 * before + 0.25 * found).ravel(), rtol=1e-5)


def test_masks_given_to_the_layer_and_scores_that_are_asked_for():
    keras = import_keras()
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 4, 5)).astype("float32"), rng.normal(size=(2, 6, 5)).astype("float32")
    mask = rng.random((2, 4, 6)) < 0.6
    mask[:, :, 0] = True
    ours, theirs = (k.layers.MultiHeadAttention(2, 3, value_dim=4) for k in (pydtconv, keras))
    theirs.build(x.shape, y.shape)
    ours.build(x.shape, y.shape)
    equal_weights(ours, theirs)
    for options in ({}, {"return_attention_scores": True}, {"use_causal_mask": True}):
        got = ours(x, y, attention_mask=mask, **options)
        expected = theirs(x, y, attention_mask=mask, **options)
        pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
        for a, b in pairs:
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_an_attention_mask_may_be_one_for_all_samples():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    mask = np.tri(3, dtype=bool)
    for layer in (layers.MultiHeadAttention(2, 2), layers.GroupedQueryAttention(2, 2, 1)):
        expected = layer(x, x, use_causal_mask=True)
        np.testing.assert_allclose(layer(x, x, attention_mask=mask), expected, atol=1e-6)
        np.testing.assert_allclose(
            layer(x, x, attention_mask=mask, value_mask=mask[2:].repeat(2, 0)), expected, atol=1e-6
        )
        np.testing.assert_allclose(
            layer(x, x, attention_mask=mask, return_attention_scores=True)[0], expected, atol=1e-6
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.MultiHeadAttention(0, 4), "num_heads: expected an integer of 1 or more, got 0"),
        (lambda: layers.MultiHeadAttention(2, 4, dropout=1.5), "dropout: expected a number from 0 to below 1"),
        (lambda: layers.GroupedQueryAttention(4, 3, 2), "num_key_value_heads: expected a divisor of 3, got 2"),
        (lambda: layers.Attention(score_mode="sum"), "score_mode: expected 'dot' or 'concat', got 'sum'"),
        (lambda: layers.Attention()(np.ones((2, 3, 4))), r"expected \[query, value\]"),
        (lambda: layers.Embedding(0, 4), "input_dim: expected an integer of 1 or more, got 0"),
        (lambda: layers.EinsumDense("abc", 4)(np.ones((2, 3, 4))), "equation: expected one such as"),
        (lambda: layers.EinsumDense("abc,cd->abd", (5, 4))(np.ones((2, 3, 4))), "output_shape: expected 3 for 'b'"),
        (lambda: layers.GroupNormalization(3)(np.ones((2, 5, 4))), "groups: expected a divisor of 4, got 3"),
        (lambda: layers.Dot(1)([np.ones((2, 3)), np.ones((2, 4))]), "axes: expected axes of one extent"),
        (lambda: layers.Dot(5)([np.ones((2, 3)), np.ones((2, 3))]), "axes: expected axes of one extent"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_attention_trains_in_mixed_precision():
    pydtconv.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = masked(pydtconv, None), attending(pydtconv, True)
        for each in model:
            each.compile("sgd", pydtconv.losses.SparseCategoricalCrossentropy(from_logits=True))
            losses = [float(each.train_on_batch(NUMBERS, NUMBERS % 3)) for _ in range(5)]
            assert losses[-1] < losses[0]
    finally:
        pydtconv.config.set_dtype_policy("float32")


def merged(k, layer):
    """Two masked inputs and one without, in one layer; the mean over the steps shows the mask of the result."""
    a, b = k.Input((4, 3)), k.Input((4, 3))
    x, y = (k.layers.Masking(0.0)(each) for each in (a, b))
    both, one = layer(k.layers)([x, y]), layer(k.layers)([x, b])
    return k.Model([a, b], [both, one, *map(k.layers.GlobalAveragePooling1D(), (both, one))])


@pytest.mark.parametrize(
    "layer",
    [
        lambda at: at.Add(),
        lambda at: at.Multiply(),
        lambda at: at.Maximum(),
        lambda at: at.Minimum(),
        lambda at: at.Concatenate(axis=1),
        lambda at: at.Concatenate(),
    ],
    ids=["add", "multiply", "maximum", "minimum", "concatenate-steps", "concatenate"],
)
def test_layers_of_several_masked_inputs(layer):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2, 4, 3)).astype("float32")
    a[:, 2:], b[:, 3:], b[1, 0] = 0, 0, 0
    found = merged(pydtconv, layer).predict([a, b], verbose=0)
    for one, other in zip(found, merged(import_keras(), layer).predict([a, b], verbose=0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "mixed_bfloat16"])
def test_concatenated_masks_in_any_dtype(dtype):
    inputs = pydtconv.Input((4, 3), dtype="float64" if dtype == "float64" else "float32")
    x = layers.Masking(dtype=dtype)(inputs)
    y = layers.Concatenate(dtype=dtype)([x, layers.Dense(2, dtype=dtype)(x)])
    y = layers.AdditiveAttention(dtype=dtype)([y, y])
    model = pydtconv.Model(inputs, layers.GlobalAveragePooling1D(dtype=dtype)(y))
    array = np.ones((1, 4, 3), "float32")
    array[:, 1:] = 0
    np.testing.assert_allclose(model.predict(array, verbose=0)[0, :3], 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "mixed_bfloat16"])
@pytest.mark.parametrize("kind", ["Attention", "GlobalAveragePooling1D"])
def test_masks_go_with_arrays_as_with_tensors_of_a_model(kind, dtype):
    embedding, inputs = layers.Embedding(6, 4, mask_zero=True, dtype=dtype), pydtconv.Input((4,), dtype="int32")
    dense, last = layers.Dense(3, dtype=dtype), getattr(layers, kind)(dtype=dtype)

    def called(x):
        y = dense(embedding(x))
        return last([y, y] if kind == "Attention" else y)

    np.testing.assert_allclose(called(NUMBERS), pydtconv.Model(inputs, called(inputs))(NUMBERS), rtol=1e-2, atol=1e-3)


def test_losses_and_metrics_of_arrays_do_not_count_masked_steps():
    inputs = pydtconv.Input((4,), dtype="int32")
    model = pydtconv.Model(inputs, layers.Dense(2)(layers.Embedding(6, 3, mask_zero=True)(inputs)))
    model.compile("sgd", "mse")
    found, y = model(NUMBERS), np.arange(24.0).reshape(3, 4, 2)
    expected = ((found - y) ** 2)[NUMBERS != 0].mean()
    assert float(pydtconv.losses.MeanSquaredError()(y, found)) == pytest.approx(expected, rel=1e-5)
    assert pydtconv.metrics.MeanSquaredError()(y, found) == pytest.approx(expected, rel=1e-5)
    assert model.evaluate(NUMBERS, y, verbose=0) == pytest.approx(expected, rel=1e-5)
    for plain in (found + 1, found.mean(), found[0]):
        assert mask_of(plain) is None


@pytest.mark.parametrize("weights", [None, np.array([1.0, 3.0], "float32")[:, None] * np.ones((1, 4), "float32")])
def test_metrics_do_not_count_masked_steps(weights):
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
    x[:, 3:], x[0, 1] = 0, 0
    y = np.ones((2, 4, 2), "float32")
    results = []
    for k in (pydtconv, import_keras()):
        inputs = k.Input((4, 3))
        model = k.Model(inputs, k.layers.Dense(2, kernel_initializer="ones")(k.layers.Masking(0.0)(inputs)))
        model.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mse"])
        results.append(model.evaluate(x, y, sample_weight=weights, verbose=0))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_softmax_with_a_mask_and_over_several_axes():
    keras = import_keras()
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    mask = np.array([[1, 1, 0, 1], [1, 0, 0, 1]], bool)[:, None] & np.ones((1, 3, 1), bool)
    mask[1, 2] = False  # of a row none: all are 0
    for axis in (-1, (1, 2)):
        expected = np.asarray(keras.layers.Softmax(axis)(x, mask=mask))
        np.testing.assert_allclose(layers.Softmax(axis)(x, mask=mask.astype("float32")), expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"mask: expected a shape that can be broadcast to \(2, 3, 4\), got \(2, 3\)"):
        layers.Softmax()(x, mask=np.ones((2, 3), "float32"))


def test_softmax_with_a_mask_in_mixed_precision():
    found = layers.Softmax(dtype="mixed_bfloat16")(np.ones((2, 4), "float32"), mask=np.eye(2, 4, dtype="float32"))
    np.testing.assert_array_equal(found, np.eye(2, 4))


def test_layers_of_ones_own_find_masks_where_a_model_is_built():
    """As in Keras's guide to masking, whose layer asserts that it is given one."""

    class Shares(layers.Layer):
        def __init__(self):
            super().__init__()
            self.supports_masking = True

        def call(self, inputs, mask=None):
            assert mask is not None
            kept = ops.exp(inputs) * ops.expand_dims(ops.cast(mask, "float32"), -1)
            return kept / ops.sum(kept, axis=1, keepdims=True)

    class Later(layers.Layer):
        def call(self, x):
            return x[:, 1:]

        def compute_mask(self, x, mask=None):
            return mask[:, 1:]

    inputs = pydtconv.Input((None,), dtype="int32")
    x = layers.Dense(1)(layers.Embedding(6, 8, mask_zero=True)(inputs))
    later = Later()(x)
    assert later.shape == (None, None, 1)
    model = pydtconv.Model(inputs, [Shares()(x), Shares()(later)])
    shares, later = model.predict(NUMBERS, verbose=0)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert (shares[..., 0][NUMBERS == 0] == 0).all()
    assert (later[..., 0][NUMBERS[:, 1:] == 0] == 0).all()


class OwnMask(layers.Layer):
    """x where its mask has ones, else 0."""

    def call(self, inputs, mask=None):
        return inputs if mask is None else inputs * ops.expand_dims(ops.cast(mask, inputs.dtype), -1)


def test_a_layer_on_each_step_is_given_the_mask_of_the_step():
    x, mask = np.arange(24.0, dtype="float32").reshape(3, 2, 4), np.array([[0, 1], [1, 0], [1, 1]], bool)
    np.testing.assert_array_equal(layers.TimeDistributed(OwnMask())(x, mask=mask), x * mask[..., None])
    dense = layers.TimeDistributed(layers.Dense(2))
    np.testing.assert_array_equal(dense(x, mask=mask), dense(x))


@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 2), (3, 3, 1)])
def test_a_mask_of_other_steps_is_refused(shape):
    with pytest.raises(ValueError, match=r"mask: expected \(3, 2, \.\.\.\)"):
        layers.TimeDistributed(layers.Dense(2))(np.zeros((3, 2, 4), "float32"), mask=np.ones(shape))


@pytest.mark.parametrize("name", ["Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"])
def test_merging_layers_take_as_many_masks_as_inputs(name):
    layer, x = getattr(layers, name)(), pydtconv.Input((4, 5))
    assert layer.compute_mask([x, x], None) is None
    assert layer.compute_mask([x, x], [None, None]) is None
    for inputs, mask in ([x, x], x), (x, [None, None]), ([x, x], [None]):
        with pytest.raises(ValueError, match="compute_mask: expected a list of inputs"):
            layer.compute_mask(inputs, mask)


def test_masks_of_elements_are_concatenated_beside_symbolic_tensors():
    """Masks of arrays may have a batch that the tensors do not know."""
    inputs = [pydtconv.Input((4, 5)), pydtconv.Input((4, 5))]
    masks = np.random.default_rng(0).integers(0, 2, (2, 3, 4, 5)).astype("float32")
    found = layers.Concatenate().compute_mask(inputs, [pydtconv.Variable(mask) for mask in masks])
    np.testing.assert_array_equal(found, masks.any((0, 3)))
