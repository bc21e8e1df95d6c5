"""`convolution_op` of convolutions, which subclasses override: weight standardization as people write it."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops

RNG = np.random.default_rng(0)
CASES = {"Conv1D": (2, 9, 4), "Conv2D": (2, 7, 6, 4), "Conv3D": (2, 5, 4, 6, 4)}


def standardized(base, by_super):
    class Standardized(base):
        def convolution_op(self, inputs, kernel):
            axes = tuple(range(len(kernel.shape) - 1))
            mean, variance = ops.moments(kernel, axes=axes, keepdims=True)
            kernel = (kernel - mean) / ops.sqrt(variance + 1e-10)
            if by_super:
                return super().convolution_op(inputs, kernel)
            return ops.conv(inputs, kernel, self.strides, self.padding, self.data_format, self.dilation_rate)

    return Standardized


@pytest.mark.parametrize("by_super", [True, False], ids=["super", "ops.conv"])
@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
@pytest.mark.parametrize("name", CASES)
def test_kernels_are_standardized(name, layout, by_super):
    base, x = getattr(layers, name), RNG.normal(size=CASES[name]).astype("float32")
    x = x if layout == "channels_last" else np.moveaxis(x, -1, 1)
    options = {"padding": "same", "strides": 2, "activation": "relu", "data_format": layout}
    own, plain = standardized(base, by_super)(3, 3, **options), base(3, 3, **options)
    own(x)
    plain(x)
    kernel = np.asarray(own.kernel.numpy(), "float64")
    axes = tuple(range(kernel.ndim - 1))
    plain.set_weights([(kernel - kernel.mean(axes)) / np.sqrt(kernel.var(axes) + 1e-10), own.bias.numpy()])
    np.testing.assert_allclose(own(x), plain(x), rtol=1e-4, atol=1e-5)


def test_standardized_kernels_are_trained():
    model = keras.Sequential([keras.Input((6, 6, 2)), standardized(layers.Conv2D, True)(1, 3, padding="same")])
    model.compile(keras.optimizers.Adam(0.05), "mse")
    x = RNG.normal(size=(16, 6, 6, 2)).astype("float32")
    before = model.layers[-1].kernel.numpy().copy()
    losses = model.fit(x, x[..., :1], epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert (model.layers[-1].kernel.numpy() != before).all()
