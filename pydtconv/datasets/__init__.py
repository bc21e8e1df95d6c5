"""Data sets by name, each with Keras's `load_data() -> (x_train, y_train), (x_test, y_test)`.

`digits` is part of the package.  The others are read from the folder that the environment variable PYDTCONV_DATA names,
else from Keras's cache folder (~/.keras/datasets, or $KERAS_HOME/datasets), else downloaded into it with a check of
their digest.  A new data set is one file here: FILES, the alternatives of files that hold it, and `load_data`.
"""

from pydtconv.datasets import (
    boston_housing,
    california_housing,
    cifar10,
    cifar100,
    digits,
    fashion_mnist,
    imdb,
    mnist,
    reuters,
)
from pydtconv.suggest import refusal

# fmt: off
__all__ = [
    "boston_housing", "california_housing", "cifar10", "cifar100", "digits", "fashion_mnist", "imdb", "mnist",
    "reuters",
]
# fmt: on

__getattr__ = refusal(__name__, __all__)
