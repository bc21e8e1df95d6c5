"""Helpers with the names of `keras.utils`."""

import importlib
from typing import Any

from pydtconv.suggest import refusal
from pydtconv.utils.dataset import PyDataset, Sequence, split_dataset
from pydtconv.utils.files import get_file
from pydtconv.utils.image_folder import image_dataset_from_directory
from pydtconv.utils.images import array_to_img, img_to_array, load_img, save_img
from pydtconv.utils.messages import (
    disable_interactive_logging,
    enable_interactive_logging,
    is_interactive_logging_enabled,
)
from pydtconv.utils.numerical import normalize, to_categorical
from pydtconv.utils.plotting import plot_learning_curve
from pydtconv.utils.progress import Progbar
from pydtconv.utils.random import set_random_seed
from pydtconv.utils.sequences import (
    pack_x_y_sample_weight,
    pad_sequences,
    standardize_dtype,
    timeseries_dataset_from_array,
    unpack_x_y_sample_weight,
)
from pydtconv.utils.session import clear_session
from pydtconv.utils.symbolic import get_source_inputs, is_keras_tensor
from pydtconv.utils.windowed_arrays import WindowedArrays

__all__ = [
    "Progbar",
    "PyDataset",
    "Sequence",
    "WindowedArrays",
    "array_to_img",
    "clear_session",
    "disable_interactive_logging",
    "enable_interactive_logging",
    "get_file",
    "get_source_inputs",
    "image_dataset_from_directory",
    "img_to_array",
    "is_interactive_logging_enabled",
    "is_keras_tensor",
    "load_img",
    "normalize",
    "pack_x_y_sample_weight",
    "pad_sequences",
    "plot_learning_curve",
    "save_img",
    "set_random_seed",
    "split_dataset",
    "standardize_dtype",
    "timeseries_dataset_from_array",
    "to_categorical",
    "unpack_x_y_sample_weight",
]

#: names that Keras has here, too; they are those of `saving`
_SAVING = (
    "CustomObjectScope",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "register_keras_serializable",
    "serialize_keras_object",
)
#: what draws models
_PLOTTING = ("model_to_dot", "plot_model")
_refuse = refusal(__name__, [*__all__, *_SAVING, *_PLOTTING])


def __getattr__(name: str) -> Any:
    if name == "bounding_boxes":
        return importlib.import_module("pydtconv.layers.preprocessing.boxes")
    if name in _PLOTTING:
        return getattr(importlib.import_module("pydtconv.models.plotting"), name)
    return getattr(importlib.import_module("pydtconv.saving"), name) if name in _SAVING else _refuse(name)


__getattr__.refuses = True  # type: ignore[attr-defined]
