"""The networks that whole-network benchmarks train, and how."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

NETWORKS = ("vgg16", "resnet34", "densenet121", "googlenet")
SIZES = (32, 224)
WIDE = "wide_filters"  # not in the zoo: `--networks wide_filters --sizes 32`
_CLASSES = {224: 1000}
#: channels and classes of networks that are not for images of three colors
OTHERS = {"cosmoflow": (1, 3), "resnet1d": (1, 10), "unet": (1, 3), "unet3d": (1, 3)}
#: names of those networks in the zoo that Keras has a network of the same name of
ZOO = {name: f"small{name}" for name in ("vgg16", "densenet121", "mobilenet", "resnet50", "resnet101", "resnet152")}


class Case(NamedTuple):
    """A network, the rows and columns of its images, and the images of a step."""

    network: str
    size: int
    batch: int

    @property
    def classes(self) -> int:
        """1000 for images of ImageNet's size, else 10; OTHERS have their own."""
        return OTHERS.get(self.network, (3, _CLASSES.get(self.size, 10)))[1]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(height, width, 3) of images; as many axes as the network has, and its channels."""
        from pydtconv import applications

        axes = 2 if self.network == WIDE else applications.axes(self.network)
        return (*[self.size] * axes, OTHERS.get(self.network, (3, 0))[0])

    def __str__(self) -> str:
        return f"{self.network} {'x'.join(map(str, self.input_shape[:-1]))}"


def cases(networks: tuple[str, ...] = NETWORKS, sizes: tuple[int, ...] = SIZES, batch: int | None = None) -> list[Case]:
    """All networks at all sizes.  batch: None for 64 small images, 16 large ones, 8 for VGG at large ones."""

    def batch_of(network: str, size: int) -> int:
        if size < 64:
            return 64
        return 8 if network.startswith("vgg") else 16

    return [Case(name, size, batch or batch_of(name, size)) for size in sizes for name in networks]


def add_case_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that `cases` takes."""
    parser.add_argument("--networks", nargs="+", default=NETWORKS, help=f"names of the zoo, or {WIDE}")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="rows and columns of an image")
    parser.add_argument("--batch", type=int, help="images a step; by default 64 small ones, 16 large ones, 8 for VGG")


def wide_filters(shape: tuple[int, int, int], classes: int) -> Any:
    """Three stages of a 5x5 convolution of 64 channels, a 7x7 one of 96, and pooling."""
    import pydtconv as keras

    model = keras.Sequential([keras.Input(shape)])
    for _ in range(3):
        model.add(keras.layers.Conv2D(64, 5, padding="same", activation="relu"))
        model.add(keras.layers.Conv2D(96, 7, padding="same", activation="relu"))
        model.add(keras.layers.MaxPooling2D(2))
    model.add(keras.layers.GlobalAveragePooling2D())
    model.add(keras.layers.Dense(classes, activation="softmax"))
    return model


def compiled(case: Case) -> Any:
    """The model of a case, compiled for SGD with momentum."""
    import pydtconv as keras

    if case.network == WIDE:
        model = wide_filters(case.input_shape, case.classes)
    else:
        model = keras.applications.build(
            ZOO.get(case.network, case.network), input_shape=case.input_shape, classes=case.classes
        )
    loss = "mean_squared_error" if case.network == "cosmoflow" else "sparse_categorical_crossentropy"
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), loss)
    return model


def batch_of(case: Case, model: Any) -> tuple[Any, Any]:
    """Random images and labels, or values, of a step."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch, *case.input_shape), np.float32)
    if case.network == "cosmoflow":
        return x, rng.standard_normal((case.batch, case.classes), np.float32)
    return x, rng.integers(0, case.classes, (case.batch, *model.output_shape[1:-1]))


def flops(model: Any) -> int:
    """Multiplications and additions of one image's training step in its convolutions and dense layers, direct method.

    Forward and two backward passes; the first layer needs no gradient of the images.
    """
    total = first = 0
    for layer in (part for outer in model.layers for part in getattr(outer, "layers", [outer])):
        weights = [w for w in layer.weights if len(w.shape) > 1]
        if not weights or type(layer).__name__ in ("ClassToken", "PositionEmbedding"):
            continue
        pixels = 1
        for extent in layer.output.shape[1:-1]:
            pixels *= extent
        whole = type(layer).__name__ in ("MultiHeadAttention", "SeparableConv2D")  # four projections, two convolutions
        several = weights if whole else weights[:1]
        one = 2 * pixels * sum(weight.value.size for weight in several)
        first = first or one
        total += one
    return 3 * total - first
