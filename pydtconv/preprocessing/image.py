"""`keras.preprocessing.image`: image files and arrays, and `ImageDataGenerator`."""

from pydtconv.preprocessing.generator import ImageDataGenerator
from pydtconv.preprocessing.iterators import ArrayIterator as NumpyArrayIterator
from pydtconv.preprocessing.iterators import DirectoryIterator
from pydtconv.utils import array_to_img, img_to_array, load_img, save_img
from pydtconv.utils.suggest import refusal

__all__ = [
    "DirectoryIterator",
    "ImageDataGenerator",
    "NumpyArrayIterator",
    "array_to_img",
    "img_to_array",
    "load_img",
    "save_img",
]

__getattr__ = refusal(__name__, __all__)
