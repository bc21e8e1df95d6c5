"""Each kind of layer in mixed_bfloat16 beside itself in float32: outputs, and the step that training takes."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers

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
