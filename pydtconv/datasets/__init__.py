"""Data sets by name, each with Keras's `load_data() -> (x_train, y_train), (x_test, y_test)`.

`digits` is part of the package.  The others are read from the folder that the environment variable PYDTCONV_DATA names,
else from Keras's cache folder (~/.keras/datasets, or $KERAS_HOME/datasets), else downloaded into it with a check of
their digest.  A new data set is one file here: FILES, the alternatives of files that hold it, and `load_data`.
"""

from pydtconv.datasets import cifar10, cifar100, digits, fashion_mnist, mnist
from pydtconv.suggest import refusal

__all__ = ["cifar10", "cifar100", "digits", "fashion_mnist", "mnist"]

__getattr__ = refusal(__name__, __all__)
