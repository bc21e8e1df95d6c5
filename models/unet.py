"""U-Nets: a label for each pixel of images and of volumes.

UNet is that of O. Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", MICCAI 2015;
UNet3D that of O. Cicek et al., "3D U-Net: Learning Dense Volumetric Segmentation from Sparse Annotation", MICCAI 2016,
which normalizes each convolution's result.  Both with "same" padding, so that every pixel gets a label.
As a script it trains UNet on discs and their outlines, drawn at random: `python unet.py [epochs]`.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

from pydtconv import layers
from pydtconv.applications.blocks import batch_norm
from pydtconv.applications.own import own

__all__ = ["UNet", "UNet3D"]

CONV = {2: layers.Conv2D, 3: layers.Conv3D}
POOL = {2: layers.MaxPooling2D, 3: layers.MaxPooling3D}
UP = {2: layers.Conv2DTranspose, 3: layers.Conv3DTranspose}


@own((256, 256, 1), 2, classifier=partial(layers.Conv2D, kernel_size=1))
def UNet(images: Any, filters: int = 64, levels: int = 5, normalize: bool = False) -> Any:
    """Two convolutions on each of `levels` levels, the first of `filters` channels, each level twice the last one's.

    input_shape: (height, width, channels), sizes that 2 ** (levels - 1) divides.  Its output is (n, height, width,
    classes), probabilities.
    """
    return _unet("unet", images, [filters << i for i in range(levels)], normalize)


@own((64, 64, 64, 1), 2, classifier=partial(layers.Conv3D, kernel_size=1))
def UNet3D(volumes: Any, filters: int = 32, levels: int = 4, normalize: bool = True) -> Any:
    """The same of volumes; each level's second convolution has twice the channels of its first.

    input_shape: (depth, height, width, channels), sizes that 2 ** (levels - 1) divides.  Its output is (n, depth,
    height, width, classes), probabilities.
    """
    return _unet("unet3d", volumes, [2 * filters << i for i in range(levels)], normalize)


def _unet(name: str, x: Any, widths: list[int], normalize: bool) -> Any:
    multiple, shape = 1 << (len(widths) - 1), tuple(x.shape[1:])
    axes = len(shape) - 1
    if any(extent % multiple for extent in shape[:-1]):
        raise ValueError(f"{name}: input_shape: expected {axes} multiples of {multiple} and the channels, got {shape}")
    kept: list[Any] = []
    for level, width in enumerate(widths):
        if level:
            x = POOL[axes](2)(x)
        x = _conv(x, axes, width // 2 if axes == 3 else width, normalize)
        x = _conv(x, axes, width, normalize)
        kept.append(x)
    for width, beside in zip(widths[-2::-1], kept[-2::-1], strict=True):
        x = UP[axes](x.shape[-1] if axes == 3 else width, 2, strides=2)(x)
        x = layers.Concatenate()([beside, x])
        x = _conv(_conv(x, axes, width, normalize), axes, width, normalize)
    return x, []


def _conv(x: Any, axes: int, filters: int, normalize: bool) -> Any:
    x = CONV[axes](filters, 3, padding="same", use_bias=not normalize, kernel_initializer="he_normal")(x)
    return layers.ReLU()(batch_norm(x) if normalize else x)


def discs(count: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images (count, size, size, 1) of a disc each, and labels (count, size, size): outside, rim, inside."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:size, :size]
    centers, radii = random.uniform(0.3, 0.7, (2, count, 1, 1)) * size, random.uniform(0.1, 0.25, (count, 1, 1)) * size
    distance = np.hypot(rows - centers[0], columns - centers[1]) - radii
    labels = np.where(distance < -1.5, 2, np.where(distance < 1.5, 1, 0))
    images = (distance < 0) + random.normal(0, 0.3, distance.shape)
    return images[..., None].astype("float32"), labels.astype("int32")


def main(epochs: int = 5) -> None:
    (x_train, y_train), (x_test, y_test) = discs(256, 64, seed=1), discs(64, 64, seed=2)
    model = UNet((64, 64, 1), 3, filters=16, levels=4, normalize=True)
    model.summary()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, batch_size=16, epochs=epochs, validation_data=(x_test, y_test))
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"test loss {loss:.4f}, accuracy of pixels {accuracy:.4f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
