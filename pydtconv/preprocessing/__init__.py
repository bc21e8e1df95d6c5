"""`keras.preprocessing`: data sets of folders and series; `image` and `sequence` are modules in it."""

from pydtconv.files.image_folder import image_dataset_from_directory
from pydtconv.files.text_folder import text_dataset_from_directory
from pydtconv.preprocessing import image, sequence
from pydtconv.suggest import refusal
from pydtconv.support.sequences import timeseries_dataset_from_array

__all__ = [
    "image",
    "image_dataset_from_directory",
    "sequence",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
]

__getattr__ = refusal(__name__, __all__)
