"""Steps of models with layers of images, for both sides: `keras` is pydtconv or Keras."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks import memory

WARM = 3  # the first steps compile
LEAST = 3
#: networks that train with images that four layers change
WHOLE = ("small convnet", "MobileNetV2")


def layers(size: int) -> dict[str, dict[str, Any]]:
    """Settings of each layer of images, by its name, for images of so many rows and columns."""
    part = {"height": size * 7 // 8, "width": size * 7 // 8}
    return {
        "RandomRotation": {"factor": 0.1},
        "RandomZoom": {"height_factor": 0.2},
        "RandomTranslation": {"height_factor": 0.1, "width_factor": 0.1},
        "RandomShear": {"x_factor": 0.2, "y_factor": 0.2},
        "RandomPerspective": {"factor": 1.0, "scale": 0.3},
        "RandomElasticTransform": {"factor": 1.0, "scale": 1.0},
        "RandomFlip": {},
        "RandomCrop": part,
        "CenterCrop": part,
        "Resizing": {"height": size * 4 // 7, "width": size * 4 // 7},
        "Rescaling": {"scale": 1 / 127.5, "offset": -1.0},
        "Normalization": {"mean": [120.0, 110.0, 100.0], "variance": [3000.0, 3100.0, 3200.0]},
        "RandomBrightness": {"factor": 0.2},
        "RandomContrast": {"factor": 0.2},
        "RandomHue": {"factor": 0.2},
        "RandomSaturation": {"factor": (0.3, 0.7)},
        "RandomGrayscale": {"factor": 0.5},
        "RandomColorDegeneration": {"factor": 0.5},
        "RandomColorJitter": {
            "brightness_factor": 0.2, "contrast_factor": 0.2, "saturation_factor": (0.3, 0.7), "hue_factor": 0.2,
        },
        "RandomInvert": {"factor": 1.0},
        "RandomPosterization": {"factor": 4},
        "RandomSharpness": {"factor": 0.5},
        "RandomErasing": {"factor": 1.0},
        "RandomGaussianBlur": {"factor": 1.0, "kernel_size": 3, "sigma": 1.0},
        "Solarization": {"threshold_factor": 0.5},
        "AutoContrast": {},
        "RandAugment": {},
        "AugMix": {},
        "CutMix": {},
        "MixUp": {},
    }  # fmt: skip


def model(keras: Any, name: str, size: int) -> Any:
    """Images, the layer of this name ("none": no layer), and what has a loss; or a network of WHOLE behind four."""
    inputs = x = keras.Input((size, size, 3))
    if name in WHOLE:
        for layer in ("RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast"):
            x = getattr(keras.layers, layer)(**layers(size)[layer])(x)
        x = keras.layers.Rescaling(1 / 127.5, -1.0)(x)
        return keras.Model(inputs, _network(keras, name, size)(x))
    if name != "none":
        x = getattr(keras.layers, name)(**layers(size)[name])(x)
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling2D()(x)))


def _network(keras: Any, name: str, size: int) -> Any:
    if name == "MobileNetV2":
        return keras.applications.MobileNetV2(weights=None, input_shape=(size, size, 3), classes=10)
    network = keras.Sequential([keras.Input((size, size, 3))])
    for filters in (32, 64, 128):
        network.add(keras.layers.Conv2D(filters, 3, padding="same", activation="relu"))
        network.add(keras.layers.MaxPooling2D())
    network.add(keras.layers.GlobalAveragePooling2D())
    network.add(keras.layers.Dense(10, activation="softmax"))
    return network


def timed(keras: Any, name: str, size: int, batch: int, steps: int, seconds: float) -> dict[str, Any]:
    """Seconds of steps by `train_on_batch`, as many as asked for or as these seconds hold, LEAST at the least.

    Images are of pixels: float32 for a layer alone, uint8, as files have them, for whole networks.
    """
    trained, rng = model(keras, name, size), np.random.default_rng(0)
    whole = name in WHOLE
    trained.compile(keras.optimizers.SGD(1e-6, momentum=0.9), "sparse_categorical_crossentropy" if whole else "mse")
    x = rng.integers(0, 256, (batch, size, size, 3)).astype("uint8" if whole else "float32")
    y = rng.integers(0, 10, batch) if whole else np.zeros((batch, 1), "float32")
    found: list[float] = []
    for step in range(WARM + steps):
        start = time.perf_counter()
        trained.train_on_batch(x, y)
        found.append(time.perf_counter() - start)
        if step >= WARM + LEAST - 1 and sum(found[WARM:]) > seconds:
            break
    numbers = int(np.prod(trained.layers[0 if name == "none" else 1].output.shape[1:]))
    return {"seconds": found[WARM:], "numbers": numbers, "peak MiB": memory.peak()}
