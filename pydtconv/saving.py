"""`keras.saving`'s names: whole models (`.keras`), weights (`.weights.h5`), and objects as plain data."""

from __future__ import annotations

from pydtconv.models.file_editor import KerasFileEditor
from pydtconv.models.model_files import load_model, save_model
from pydtconv.models.onnx_files import load_onnx
from pydtconv.models.weight_files import load_weights, save_weights
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object
from pydtconv.serialization.registry import (
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
)
from pydtconv.suggest import refusal

CustomObjectScope = custom_object_scope

__all__ = [
    "CustomObjectScope",
    "KerasFileEditor",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "load_model",
    "load_onnx",
    "load_weights",
    "register_keras_serializable",
    "save_model",
    "save_weights",
    "serialize_keras_object",
]

__getattr__ = refusal(__name__, __all__)
