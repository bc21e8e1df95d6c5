"""CosmoFlow: the parameters of a universe from how its matter is spread.

A. Mathuriya et al., "CosmoFlow: Using Deep Learning to Learn the Universe at Scale", SC 2018: seven convolutions of
volumes with leaky ReLUs and average pooling, three dense layers, a regression.  The kernels here are all of 3x3x3 with
"same" padding.  As a script it learns the strength and the grain of random fields: `python cosmoflow.py [epochs]`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pydtconv import layers, optimizers
from pydtconv.applications.own import own

__all__ = ["CosmoFlow"]

FILTERS = (16, 32, 64, 128, 256, 256, 256)


@own((128, 128, 128, 1), 3, activation=None)
def CosmoFlow(images: Any, filters: tuple[int, ...] = FILTERS, units: tuple[int, ...] = (2048, 256)) -> Any:
    """Convolutions of `filters` channels, pooling behind all but the last, dense layers of `units`, `classes` values.

    input_shape: (depth, height, width, channels), each extent 2 ** (len(filters) - 1) or more.  classes: how many
    values are predicted.
    """
    least, extents = 1 << (len(filters) - 1), tuple(images.shape[1:])
    if min(extents[:-1]) < least:
        raise ValueError(f"cosmoflow: input_shape: expected 3 extents of {least} or more, got {extents}")
    features: list[Any] = []
    for i, count in enumerate(filters):
        features.append(layers.Conv3D(count, 3, padding="same", kernel_initializer="he_normal"))
        features.append(layers.LeakyReLU(negative_slope=0.3))
        if i + 1 < len(filters):
            features.append(layers.AveragePooling3D(2))
    top: list[Any] = [layers.Flatten()]
    for count in units:
        top += [layers.Dense(count, kernel_initializer="he_normal"), layers.LeakyReLU(negative_slope=0.3)]
    return features, top


def fields(count: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random fields (count, size, size, size, 1), and the strength and the size of grains of each, from -1 to 1."""
    random = np.random.default_rng(seed)
    strength, grain = random.uniform(-1, 1, (2, count))
    frequency = np.fft.fftfreq(size)
    square = sum(axis**2 for axis in np.meshgrid(frequency, frequency, frequency[: size // 2 + 1], indexing="ij"))
    x = np.empty((count, size, size, size, 1), "float32")
    for i in range(count):
        spectrum = np.fft.rfftn(random.normal(size=(size,) * 3)) * np.exp(-square * (2 + grain[i]) ** 2 * 8)
        field = np.fft.irfftn(spectrum, (size,) * 3, axes=(0, 1, 2))
        x[i, ..., 0] = (1.5 + strength[i]) * field / field.std()
    return x, np.stack([strength, grain], -1).astype("float32")


def main(epochs: int = 5) -> None:
    (x_train, y_train), (x_test, y_test) = fields(96, 32, seed=1), fields(32, 32, seed=2)
    model = CosmoFlow((32, 32, 32, 1), classes=2, filters=(16, 32, 64, 128), units=(128, 64))
    model.summary()
    model.compile(optimizer=optimizers.Adam(1e-3), loss="mean_squared_error")
    model.fit(x_train, y_train, batch_size=8, epochs=epochs, validation_data=(x_test, y_test))
    print(f"test loss {model.evaluate(x_test, y_test, verbose=0):.4f}, of a constant {y_test.var():.4f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
