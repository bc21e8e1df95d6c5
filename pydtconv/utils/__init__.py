"""Helpers with the names of `keras.utils`."""

from pydtconv.utils.dataset import PyDataset, Sequence, split_dataset
from pydtconv.utils.files import get_file
from pydtconv.utils.image_folder import image_dataset_from_directory
from pydtconv.utils.numerical import normalize, to_categorical
from pydtconv.utils.plotting import plot_learning_curve
from pydtconv.utils.progress import Progbar
from pydtconv.utils.random import set_random_seed
from pydtconv.utils.session import clear_session
from pydtconv.utils.suggest import refusal

__all__ = [
    "Progbar",
    "PyDataset",
    "Sequence",
    "clear_session",
    "get_file",
    "image_dataset_from_directory",
    "normalize",
    "plot_learning_curve",
    "set_random_seed",
    "split_dataset",
    "to_categorical",
]

__getattr__ = refusal(__name__, __all__)
