"""Helpers with the names of `keras.utils`."""

from typing import Any

from pydtconv.files.download import get_file
from pydtconv.files.image_folder import image_dataset_from_directory
from pydtconv.files.images import array_to_img, img_to_array, load_img, save_img
from pydtconv.files.plotting import plot_learning_curve
from pydtconv.files.reading import BadFileError
from pydtconv.files.text_folder import text_dataset_from_directory
from pydtconv.files.windowed_arrays import WindowedArrays
from pydtconv.suggest import refusal
from pydtconv.support import numerical
from pydtconv.support.dataset import PyDataset, Sequence, split_dataset
from pydtconv.support.messages import (
    disable_interactive_logging,
    enable_interactive_logging,
    is_interactive_logging_enabled,
)
from pydtconv.support.numerical import to_categorical
from pydtconv.support.progress import Progbar
from pydtconv.support.random import set_random_seed
from pydtconv.support.sequences import (
    pack_x_y_sample_weight,
    pad_sequences,
    standardize_dtype,
    timeseries_dataset_from_array,
    unpack_x_y_sample_weight,
)
from pydtconv.support.session import clear_session
from pydtconv.support.symbolic import get_source_inputs, is_keras_tensor

__all__ = [
    "BadFileError",
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
    "text_dataset_from_directory",
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
_refuse = refusal(__name__, [*__all__, "FeatureSpace", *_SAVING, *_PLOTTING])


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """x divided by its norm of an order along an axis: of an array, where a zero norm divides by 1, or of a tensor."""
    from pydtconv import ops
    from pydtconv.graph.ir.variable import Variable

    if hasattr(x, "apply_op") or isinstance(x, Variable):
        return ops.normalize(x, axis, order)
    return numerical.normalize(x, axis, order)


def __getattr__(name: str) -> Any:
    if name == "bounding_boxes":
        from pydtconv.layers.preprocessing import boxes

        return boxes
    if name in ("FeatureSpace", "feature_space"):
        from pydtconv.layers.preprocessing import feature_space

        return feature_space if name == "feature_space" else feature_space.FeatureSpace
    if name in _PLOTTING:
        from pydtconv.models import plotting

        return getattr(plotting, name)
    if name in _SAVING:
        from pydtconv import saving

        return getattr(saving, name)
    return _refuse(name)


__getattr__.refuses = True  # type: ignore[attr-defined]
