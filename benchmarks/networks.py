"""The networks that whole-network benchmarks train, and how."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

NETWORKS = ("vgg16", "resnet34", "densenet121", "googlenet")
SIZES = (32, 224)
_CLASSES = {224: 1000}


class Case(NamedTuple):
    """A network, the rows and columns of its images, and the images of a step."""

    network: str
    size: int
    batch: int

    @property
    def classes(self) -> int:
        """1000 for images of ImageNet's size, else 10."""
        return _CLASSES.get(self.size, 10)

    def __str__(self) -> str:
        return f"{self.network} {self.size}x{self.size}"


def cases(networks: tuple[str, ...] = NETWORKS, sizes: tuple[int, ...] = SIZES, batch: int | None = None) -> list[Case]:
    """All networks at all sizes.  batch: None for 64 small images, 16 large ones, 8 for VGG at large ones."""

    def batch_of(network: str, size: int) -> int:
        if size < 64:
            return 64
        return 8 if network.startswith("vgg") else 16

    return [Case(name, size, batch or batch_of(name, size)) for size in sizes for name in networks]


def add_case_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that `cases` takes."""
    parser.add_argument("--networks", nargs="+", default=NETWORKS, help="names of the zoo")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="rows and columns of an image")
    parser.add_argument("--batch", type=int, help="images a step; by default 64 small ones, 16 large ones, 8 for VGG")


def compiled(case: Case) -> Any:
    """The model of a case, compiled for SGD with momentum."""
    import pydtconv as keras

    model = keras.applications.build(case.network, input_shape=(case.size, case.size, 3), classes=case.classes)
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "sparse_categorical_crossentropy")
    return model


def flops(model: Any) -> int:
    """Multiplications and additions of one image's training step in its convolutions and dense layers, direct method.

    Forward and two backward passes; the first layer needs no gradient of the images.
    """
    total = first = 0
    for layer in model.layers:
        weights = [w for w in layer.weights if len(w.shape) > 1]
        if not weights:
            continue
        pixels = 1
        for extent in layer.output.shape[1:-1]:
            pixels *= extent
        one = 2 * pixels * weights[0].value.size
        first = first or one
        total += one
    return 3 * total - first
