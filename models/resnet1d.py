"""A residual network for time series.

Z. Wang, W. Yan, T. Oates, "Time Series Classification from Scratch with Deep Neural Networks: A Strong Baseline", IJCNN
2017, section II-C.  As a script it tells waves of three forms apart: `python resnet1d.py [epochs]`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pydtconv import layers
from pydtconv.applications.blocks import batch_norm
from pydtconv.applications.own import own

__all__ = ["ResNet1D"]


@own((1024, 1), 10, pool=layers.GlobalAveragePooling1D)
def ResNet1D(signals: Any, filters: tuple[int, ...] = (64, 128, 128), kernels: tuple[int, ...] = (8, 5, 3)) -> Any:
    """A block of convolutions of `kernels` steps for each of `filters`, beside a shortcut; the mean over time; softmax.

    input_shape: (steps, channels).
    """
    x = signals
    for count in filters:
        x = _block(x, count, kernels)
    return x


def _block(x: Any, filters: int, kernels: tuple[int, ...]) -> Any:
    y = x
    for i, kernel in enumerate(kernels):
        y = batch_norm(_conv(y, filters, kernel))
        if i + 1 < len(kernels):
            y = layers.ReLU()(y)
    x = batch_norm(x if x.shape[-1] == filters else _conv(x, filters, 1))
    return layers.ReLU()(layers.Add()([y, x]))


def _conv(x: Any, filters: int, kernel: int) -> Any:
    return layers.Conv1D(filters, kernel, padding="same", use_bias=False, kernel_initializer="he_normal")(x)


def waves(count: int, steps: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy waves (count, steps, 1) of random lengths and phases, and whether they are sines, squares or saws."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, count)
    turns = np.arange(steps) / steps * random.uniform(3, 12, (count, 1)) + random.random((count, 1))
    forms = np.sin(2 * np.pi * turns), np.sign(np.sin(2 * np.pi * turns)), 2 * (turns % 1) - 1
    x = np.choose(labels[:, None], forms) + random.normal(0, 0.5, turns.shape)
    return x[..., None].astype("float32"), labels


def main(epochs: int = 5) -> None:
    (x_train, y_train), (x_test, y_test) = waves(1024, 256, seed=1), waves(256, 256, seed=2)
    model = ResNet1D((256, 1), 3)
    model.summary()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, batch_size=32, epochs=epochs, validation_data=(x_test, y_test))
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"test loss {loss:.4f}, test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
