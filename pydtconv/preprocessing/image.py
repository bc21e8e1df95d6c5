"""`keras.preprocessing.image`: image files and arrays, and `ImageDataGenerator`."""

from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.files.images import array_to_img, img_to_array, load_img, save_img
from pydtconv.preprocessing.generator import ImageDataGenerator
from pydtconv.preprocessing.iterators import ArrayIterator as NumpyArrayIterator
from pydtconv.preprocessing.iterators import DirectoryIterator
from pydtconv.suggest import refusal

__all__ = [
    "DirectoryIterator",
    "ImageDataGenerator",
    "NumpyArrayIterator",
    "array_to_img",
    "img_to_array",
    "load_img",
    "save_img",
    "smart_resize",
]


def smart_resize(
    x: Any,
    size: tuple[int, int],
    interpolation: str = "bilinear",
    data_format: str = "channels_last",
    backend_module: Any = None,
) -> Any:
    """The middle of an image or of images (..., h, w, c), of the proportions of size (h, w), resized to it."""
    if backend_module is not None:
        raise NotImplementedError("smart_resize: expected backend_module=None: there is one backend")
    y = ops.image.resize(x, size, interpolation, crop_to_aspect_ratio=True, data_format=data_format)
    return np.asarray(y) if isinstance(x, np.ndarray) else y


__getattr__ = refusal(__name__, __all__)
