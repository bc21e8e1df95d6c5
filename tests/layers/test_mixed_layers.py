"""Each kind of layer in mixed_bfloat16 beside itself in float32: outputs, and the step that training takes."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops

CASES = {
    # no ReLU: a score near zero falls on either side, and takes its whole gradient with it
    "Conv2D": lambda dtype: [layers.Conv2D(5, 3, 2, "same", activation="sigmoid", dtype=dtype)],
    "Conv2D grouped": lambda dtype: [layers.Conv2D(8, 3, groups=2, dtype=dtype)],
    "Conv2D channels_first": lambda dtype: [layers.Conv2D(5, 3, data_format="channels_first", dtype=dtype)],
    "DepthwiseConv2D": lambda dtype: [layers.DepthwiseConv2D(3, activation="tanh", dtype=dtype)],
    "SeparableConv2D": lambda dtype: [layers.SeparableConv2D(5, 3, dtype=dtype)],
    "Conv2DTranspose": lambda dtype: [layers.Conv2DTranspose(3, 3, 2, activation="relu", dtype=dtype)],
    "Dense": lambda dtype: [layers.Dense(7, activation="sigmoid", dtype=dtype)],
    "Dense gelu": lambda dtype: [layers.Dense(7, activation="gelu", dtype=dtype)],
    "BatchNormalization": lambda dtype: [layers.BatchNormalization(dtype=dtype)],
    "LayerNormalization": lambda dtype: [layers.LayerNormalization(dtype=dtype)],
    "PReLU": lambda dtype: [layers.PReLU(dtype=dtype)],
    "Softmax": lambda dtype: [layers.Dense(5, dtype=dtype), layers.Softmax(dtype=dtype)],
    "pooling": lambda dtype: [layers.MaxPooling2D(3, 2, dtype=dtype), layers.AveragePooling2D(2, dtype=dtype)],
    "padding": lambda dtype: [layers.ZeroPadding2D(2, dtype=dtype), layers.Cropping2D(1, dtype=dtype)],
    "UpSampling2D": lambda dtype: [layers.UpSampling2D(2, interpolation="bilinear", dtype=dtype)],
    "Dropout": lambda dtype: [layers.Dropout(0.3, seed=3, dtype=dtype)],
    "reshaping": lambda dtype: [layers.Permute((2, 1, 3), dtype=dtype), layers.Flatten(dtype=dtype)],
    "GroupNormalization": lambda dtype: [layers.GroupNormalization(2, dtype=dtype)],
    "RMSNormalization": lambda dtype: [layers.RMSNormalization(dtype=dtype)],
    "UnitNormalization": lambda dtype: [layers.UnitNormalization(dtype=dtype)],
    "Conv3D": lambda dtype: [layers.Reshape((6, 8, 2, 2), dtype=dtype), layers.Conv3D(3, 2, dtype=dtype)],
    "Conv1D": lambda dtype: [layers.Reshape((48, 4), dtype=dtype), layers.Conv1D(3, 5, padding="causal", dtype=dtype)],
    "Rescaling": lambda dtype: [layers.Rescaling(0.5, -1, dtype=dtype)],
    "Normalization": lambda dtype: [layers.Normalization(mean=0.5, variance=2.0, dtype=dtype)],
}


def step(case: str, policy: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """Results, and what one step of training changes the weights by."""
    keras.utils.set_random_seed(2)
    inputs = keras.Input((6, 8, 4))
    x = layers.Conv2D(4, 1, dtype=policy)(inputs)
    for layer in CASES[case](policy):
        x = layer(x)
    model = keras.Model(inputs, x)
    model.compile(keras.optimizers.SGD(1.0), "mse")
    rng = np.random.default_rng(1)
    images = rng.normal(size=(4, 6, 8, 4)).astype("float32")
    y = model.predict(images, verbose=0)
    before = model.get_weights()
    model.train_on_batch(images, rng.normal(size=y.shape))
    return y, [a - b for a, b in zip(model.get_weights(), before, strict=True)]


@pytest.mark.parametrize("case", list(CASES))
def test_a_layer_computes_in_bfloat16_what_it_computes_in_float32(case: str) -> None:
    (y, found), (wide, expected) = step(case, "mixed_bfloat16"), step(case, "float32")
    assert y.dtype == np.float32
    assert not np.array_equal(y, wide)  # it has rounded
    for a, b in zip([y, *found], [wide, *expected], strict=True):
        # a bias before a normalization has no gradient but what rounding makes
        scale = max(np.abs(b).max(), 0.05 * max(np.abs(e).max() for e in expected))
        assert np.abs(a - b).max() < 0.05 * scale


def computed(call, x: np.ndarray, dtype: str = "mixed_bfloat16") -> tuple[str, np.ndarray]:
    """What a layer with this call gives, and the dtype of that."""

    class Own(layers.Layer):
        def call(self, inputs):
            return call(self, inputs)

    inputs = keras.Input(x.shape[1:])
    outputs = Own(dtype=dtype)(inputs)
    return outputs.dtype, keras.Model(inputs, outputs).predict(x, verbose=0)


ROW = np.array([[1.5, -2.25, 0.0, 3.0]], "float32")
MADE = {
    "zeros": (lambda layer, x: x + ops.zeros((4,), dtype=x.dtype), ROW),
    "ones": (lambda layer, x: x * ops.ones(ops.shape(x), dtype=layer.compute_dtype), ROW),
    "full": (lambda layer, x: x * ops.full((4,), 2.0, dtype=x.dtype), 2 * ROW),
    "arange": (lambda layer, x: x * ops.arange(4, dtype=x.dtype), ROW * [0, 1, 2, 3]),
    "convert_to_tensor": (
        lambda layer, x: x * ops.convert_to_tensor([1.0, 2, 0, 1], dtype=x.dtype),
        ROW * [1, 2, 0, 1],
    ),
    "cast": (lambda layer, x: x * ops.cast(np.arange(4.0), x.dtype), ROW * [0, 1, 2, 3]),
    "one_hot": (lambda layer, x: ops.one_hot(ops.argmax(x, axis=-1), 4, dtype=x.dtype), [[0, 0, 0, 1]]),
    "cumsum": (lambda layer, x: ops.cumsum(x, axis=-1, dtype=x.dtype), np.cumsum(ROW, -1)),
    "saturate_cast": (lambda layer, x: ops.saturate_cast(x * np.inf, "bfloat16") * 0.0, np.where(ROW == 0, np.nan, 0)),
    "normal": (lambda layer, x: x + keras.random.normal((4,), stddev=0.0, dtype=x.dtype), ROW),
    "uniform": (lambda layer, x: x + keras.random.uniform((4,), 1.0, 1.0, dtype=x.dtype), ROW + 1),
}


@pytest.mark.parametrize("name", list(MADE))
def test_tensors_are_made_in_the_dtype_of_the_layer(name: str) -> None:
    call, expected = MADE[name]
    dtype, found = computed(call, ROW)
    assert dtype == "bfloat16"
    np.testing.assert_array_equal(found, np.asarray(expected, "float32"))


def test_numbers_of_bfloat16_become_integers_and_truth_values() -> None:
    for kind, expected in (
        ("int32", [[1, -2, 0, 3]]),
        ("bool", [[True, True, False, True]]),
        ("uint8", [[1, 254, 0, 3]]),
    ):
        dtype, found = computed(lambda layer, x, kind=kind: ops.cast(x, kind), ROW)
        assert dtype == kind
        np.testing.assert_array_equal(found, expected)


def test_random_numbers_of_bfloat16_stay_below_the_upper_end() -> None:
    x = np.zeros((1, 20000), "float32")
    _, found = computed(lambda layer, x: x + keras.random.uniform((20000,), dtype=x.dtype), x)
    assert found.min() >= 0
    assert 0.9 < found.max() < 1


def test_means_of_masked_steps() -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    x[0, 3:] = x[1, 1:] = 0
    inputs = keras.Input((5, 3))
    mean = layers.GlobalAveragePooling1D(dtype="mixed_bfloat16")(layers.Masking(dtype="mixed_bfloat16")(inputs))
    found = keras.Model(inputs, mean).predict(x, verbose=0)
    np.testing.assert_allclose(found, [x[0, :3].mean(0), x[1, 0]], atol=0.02)


def test_means_of_many_masked_steps_count_them_exactly() -> None:
    x = np.ones((1, 300, 1), "float32")
    pool = layers.GlobalAveragePooling1D(dtype="mixed_bfloat16")
    np.testing.assert_array_equal(pool(x, mask=np.arange(300)[None] < 257), [[1]])
    inputs = keras.Input((300, 1))
    outputs = pool(layers.Masking(7.0, dtype="mixed_bfloat16")(inputs))
    assert outputs.dtype == "bfloat16"


@pytest.mark.parametrize("make", [lambda: layers.Resizing(9, 4), lambda: layers.CenterCrop(7, 7)])
def test_images_that_are_resized_are_rounded_once(make) -> None:
    x = np.random.default_rng(0).integers(0, 256, (2, 6, 5, 3)).astype("float32")
    found = {}
    for policy in ("mixed_bfloat16", "float32"):
        layer = type(made := make()).from_config({**made.get_config(), "dtype": policy})
        inputs = keras.Input(x.shape[1:])
        outputs = layer(inputs)
        found[outputs.dtype] = keras.Model(inputs, outputs).predict(x, verbose=0)
    np.testing.assert_allclose(found["bfloat16"], found["float32"], rtol=2.0**-8)


def test_similarity_of_images_of_bfloat16() -> None:
    x = np.random.default_rng(0).integers(96, 104, (1, 12, 12, 1)).astype("float32")
    y = x[:, ::-1].copy()
    _, found = computed(lambda layer, x: ops.image.ssim(x, ops.flip(x, 1), max_val=8.0), x)
    np.testing.assert_allclose(found, ops.image.ssim(x, y, max_val=8.0), rtol=1e-5)


def test_variables_and_inputs_of_bfloat16_are_refused() -> None:
    for call in (
        lambda: keras.Variable(np.ones(2), dtype="bfloat16"),
        lambda: layers.Layer().add_weight((2,), dtype="bfloat16"),
        lambda: keras.Input((2,), dtype="bfloat16"),
    ):
        with pytest.raises(ValueError, match="dtype: expected one such as float32, got 'bfloat16'"):
            call()


def test_gradients_end_at_bounds_that_have_no_bfloat16() -> None:
    """0.1 becomes 0.10009765625 there, which is above 0.1, and 0.7 becomes 0.69921875."""
    x = np.array([[-1.0, 0.05, 0.3, 0.65, 0.75, 4.0]], "float32")
    clip = layers.Lambda(lambda x: ops.clip(x, 0.1, 0.7), dtype="mixed_bfloat16")
    with keras.GradientTape() as tape:
        tape.watch(x)
        y = clip(x)
    np.testing.assert_array_equal(np.asarray(tape.gradient(y, x)), [[0, 0, 1, 1, 0, 0]])


def test_numbers_are_rounded_as_what_they_are_compared_with() -> None:
    x = np.array([[0.1, 0.2, -0.1]], "float32")
    for call in (lambda layer, x: ops.equal(x, 0.1), lambda layer, x: ops.logical_not(ops.not_equal(x, 0.1))):
        np.testing.assert_array_equal(computed(call, x)[1], [[True, False, False]])
    steps = np.full((1, 3, 2), 0.1, "float32")
    steps[0, 0] = 1
    inputs = keras.Input((3, 2))
    x = layers.Masking(0.1, dtype="mixed_bfloat16")(inputs)
    found = keras.Model(inputs, layers.GlobalAveragePooling1D(dtype="mixed_bfloat16")(x)).predict(steps, verbose=0)
    np.testing.assert_array_equal(found, [[1, 1]])


def policy_of(x):
    return "mixed_bfloat16" if x.dtype == "bfloat16" else "float64"


COMPOSED = {
    "var": lambda x: ops.var(x, axis=-1),
    "std": lambda x: ops.std(x, axis=-1),
    "moments": lambda x: ops.moments(x, axes=[-1])[1],
    "norm": lambda x: ops.norm(x, axis=-1),
    "rms_normalization": ops.rms_normalization,
    "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
    "softmax": lambda x: ops.softmax(x, axis=(1, 2)),
    "log_softmax": lambda x: ops.log_softmax(x, axis=(1, 2)),
    "Softmax": lambda x: layers.Softmax(axis=(1, 2), dtype=policy_of(x))(x),
    "power": lambda x: 10.0 ** (x / 4.0),
    "glu": ops.glu,
    "normalize": ops.normalize,
    "normalize by cubes": lambda x: ops.normalize(x, order=3),
    "UnitNormalization": lambda x: layers.UnitNormalization(dtype=policy_of(x))(x),
    "Rescaling": lambda x: layers.Rescaling(1 / 127.5, -0.77, dtype=policy_of(x))(x),
}


@pytest.mark.parametrize("name", list(COMPOSED))
def test_functions_of_several_operators_round_once(name: str) -> None:
    x = np.random.default_rng(0).integers(98, 103, (2, 5, 8)).astype("float32")
    dtype, found = computed(lambda layer, x: COMPOSED[name](x), x)
    assert dtype == "bfloat16"
    with np.errstate(over="ignore"):
        expected = computed(lambda layer, x: COMPOSED[name](x), x, "float64")[1]
    np.testing.assert_allclose(found, expected, rtol=2.0**-8, atol=1e-30)


def test_a_dense_layer_of_no_features_gives_its_bias() -> None:
    dense = layers.Dense(3, activation="relu", bias_initializer="ones", dtype="mixed_bfloat16")
    np.testing.assert_array_equal(dense(np.zeros((2, 0), "float32")), np.ones((2, 3)))


def test_what_follows_from_variables_alone_is_read_as_what_it_meets() -> None:
    class Scaled(layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight((shape[-1],), "ones")

        def call(self, inputs):
            return inputs * ops.reshape(self.scale, (1, -1)) + ops.softplus(self.scale)

    inputs = keras.Input((4,))
    assert Scaled(dtype="mixed_bfloat16")(inputs).dtype == "bfloat16"
    images = keras.Input((3, 3, 4))
    assert layers.GroupNormalization(2, dtype="mixed_bfloat16")(images).dtype == "bfloat16"
    adapted = layers.Normalization(dtype="mixed_bfloat16")
    adapted.adapt(np.random.default_rng(0).normal(size=(9, 4)))
    assert adapted(inputs).dtype == "bfloat16"


def test_group_normalization_rounds_once() -> None:
    x = np.random.default_rng(0).integers(-8, 8, (2, 6, 6, 8)).astype("float32")
    rng, results = np.random.default_rng(1), {}
    weights = [rng.normal(size=8) for _ in range(2)]
    for policy in ("mixed_bfloat16", "float64"):
        layer = layers.GroupNormalization(2, dtype=policy)
        layer.build(x.shape)
        layer.set_weights(weights)
        results[policy] = layer(x)
    np.testing.assert_allclose(results["mixed_bfloat16"], results["float64"], rtol=2.0**-8, atol=1e-6)


MOVED = {
    "flip": lambda x: ops.flip(x, -1),
    "roll": lambda x: ops.roll(x, 1, axis=-1),
    "tile": lambda x: ops.tile(x, (1, 2)),
    "steps": lambda x: x[:, ::2],
    "sort": ops.sort,
    "take": lambda x: ops.take(x, [0, 3], axis=1),
    "top_k": lambda x: ops.top_k(x, 2)[0],
    "stop_gradient": ops.stop_gradient,
    "where": lambda x: ops.where(x > 0, x, 0.5),
    "where among numbers": lambda x: ops.where(ops.isnan(x), -1.0, x),
    "scatter_update": lambda x: ops.scatter_update(x, [[0, 1]], [7.0]),
    "slice_update": lambda x: ops.slice_update(x, [0, 1], x[:, :1]),
    "fmax": lambda x: ops.fmax(x, 0.5),
    "floor": ops.floor,
}


@pytest.mark.parametrize("name", list(MOVED))
def test_elements_that_are_moved_stay_what_they_are(name: str) -> None:
    dtype, found = computed(lambda layer, x: MOVED[name](x), ROW)
    assert dtype == "bfloat16"
    np.testing.assert_array_equal(found, MOVED[name](ROW))
    inputs = keras.Input((4,))
    outputs = MOVED[name](
        layers.Identity(dtype="mixed_bfloat16")(layers.Activation("linear", dtype="mixed_bfloat16")(inputs))
    )
    assert outputs.dtype == "bfloat16"
    np.testing.assert_array_equal(keras.Model(inputs, outputs).predict(ROW, verbose=0), found)
