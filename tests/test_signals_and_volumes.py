"""Networks of signals and of volumes: runs of Keras from equal weights, plans that change nothing."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from pydtconv.graph import MemoryLimitError
from pydtconv.graph.ir.graph import joins_channels
from tests.real_keras import import_keras

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(24, 6, 4, 8, 2)).astype("float32"), RNG.integers(0, 4, 24)


def network(k):
    """The same network of keras or of pydtconv: a volume, and its rows as signals."""
    first = k.layers.Input((6, 4, 8, 2))
    x = k.layers.Conv3D(6, 3, padding="same", use_bias=False)(first)
    kept = x = k.layers.ReLU()(k.layers.BatchNormalization()(x))
    x = k.layers.Conv3D(6, (1, 3, 3), padding="same", activation="relu")(k.layers.SpatialDropout3D(0.0)(x))
    x = k.layers.Concatenate()([k.layers.Add()([x, kept]), x])
    x = k.layers.MaxPooling3D(2)(x)
    x = k.layers.Conv3DTranspose(5, 2, strides=2, activation="tanh")(x)
    x = k.layers.AveragePooling3D((2, 2, 1))(k.layers.Cropping3D(((1, 1), (0, 0), (0, 0)))(x))
    x = k.layers.GlobalMaxPooling3D(keepdims=True)(k.layers.UpSampling3D((1, 2, 1))(k.layers.ZeroPadding3D(1)(x)))
    y = k.layers.Conv1D(6, 5, strides=2, padding="causal")(k.layers.Reshape((24, 16))(first))
    y = k.layers.ReLU()(k.layers.BatchNormalization()(y))
    y = k.layers.SeparableConv1D(6, 3, padding="same", activation="relu")(y)
    y = k.layers.Concatenate()([y, k.layers.DepthwiseConv1D(3, padding="same")(y)])
    y = k.layers.Conv1DTranspose(4, 3, strides=2, padding="same")(k.layers.MaxPooling1D(2)(y))
    y = k.layers.GlobalAveragePooling1D()(
        k.layers.UpSampling1D(2)(k.layers.ZeroPadding1D(1)(k.layers.Cropping1D(1)(y)))
    )
    x = k.layers.Concatenate()([k.layers.Flatten()(x), y])
    return k.Model(first, k.layers.Dense(4, activation="softmax")(x))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("variant", ["AUTO", "CGT+DG"])
def test_ten_steps_are_those_of_keras(variant, request):
    keras = import_keras("jax")
    before = pydtconv.config.conv_variant()
    request.addfinalizer(lambda: pydtconv.config.set_conv_variant(before))
    pydtconv.config.set_conv_variant(variant)
    ours, theirs = network(pydtconv), network(keras)
    rng = np.random.default_rng(5)
    start = [0.3 * rng.normal(size=w.shape) if w.ndim > 1 else w for w in theirs.get_weights()]
    losses = []
    for k, model in (pydtconv, ours), (keras, theirs):
        model.set_weights(start)
        model.compile(k.optimizers.SGD(0.05, momentum=0.9), "sparse_categorical_crossentropy")
        steps = [slice(i % 3 * 8, i % 3 * 8 + 8) for i in range(10)]
        losses.append([float(np.ravel(model.train_on_batch(X[step], Y[step]))[0]) for step in steps])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    for a, b in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_weights_of_keras_are_read(tmp_path):
    keras = import_keras()
    theirs, ours = network(keras), network(pydtconv)
    theirs.save_weights(tmp_path / "w.weights.h5")
    ours.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_allclose(ours.predict(X, verbose=0), theirs.predict(X, verbose=0), rtol=1e-4, atol=1e-5)
    theirs.save(tmp_path / "m.keras")
    loaded = pydtconv.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(loaded.predict(X, verbose=0), ours.predict(X, verbose=0), rtol=1e-5, atol=1e-6)


def joined():
    """A dense block of volumes: normalization, ReLU and bias fuse, channels are joined in place."""
    pydtconv.utils.set_random_seed(1)
    inputs = pydtconv.Input((6, 8, 8, 2))
    x = layers.Conv3D(8, 3, padding="same", use_bias=False)(inputs)
    for _ in range(3):
        y = layers.Conv3D(8, 1, use_bias=False)(layers.ReLU()(layers.BatchNormalization()(x)))
        y = layers.Conv3D(4, 3, padding="same")(layers.ReLU()(layers.BatchNormalization()(y)))
        x = layers.Concatenate()([x, y])
    model = pydtconv.Model(inputs, layers.Dense(3, activation="softmax")(layers.GlobalAveragePooling3D()(x)))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def test_fusion_and_a_memory_limit_do_not_change_results(request):
    request.addfinalizer(lambda: pydtconv.config.set_conv_variant("AUTO"))
    x, y = RNG.normal(size=(8, 6, 8, 8, 2)).astype("float32"), RNG.integers(0, 3, 8)

    def losses(variant, **options):
        pydtconv.config.set_conv_variant(variant)
        return joined().fit(x, y, batch_size=8, epochs=4, shuffle=False, verbose=0, **options).history["loss"]

    plan = joined().plan(8)
    assert all(joins_channels(node) for node in plan.graph.nodes if node.op.name == "concatenate")
    with pytest.raises(MemoryLimitError) as least:
        joined().plan(8, memory_limit=1)
    limit = (least.value.smallest_bytes + plan.peak_bytes) // 2
    want = losses("AUTO")
    np.testing.assert_allclose(losses("AUTO", memory_limit=limit), want, rtol=1e-5)
    np.testing.assert_allclose(losses("BASE"), want, rtol=1e-4)


@pytest.mark.parametrize("rank", [1, 3])
def test_zeros_around_become_padding_of_the_convolution(rank):
    conv, zeros = (getattr(layers, f"{kind}{rank}D") for kind in ("Conv", "ZeroPadding"))
    inputs = pydtconv.Input((*[8] * rank, 2))
    y = conv(3, 3, strides=2)(zeros(1)(inputs))
    model = pydtconv.Model(inputs, layers.Flatten()(y))
    model.compile("sgd", "mse")
    ops = [node.op for node in model.plan(2).graph.nodes]
    assert not any(op.name == "pad" for op in ops)
    assert ops[0].padding == ((1, 1),) * rank
