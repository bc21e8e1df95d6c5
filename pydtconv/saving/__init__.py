"""Saving: whole models (`.keras`), weights (`.weights.h5`), and objects as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydtconv.saving.registry import (
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
)
from pydtconv.saving.serialization import deserialize_keras_object, serialize_keras_object

if TYPE_CHECKING:
    from pydtconv.models.model_files import load_model, save_model
    from pydtconv.models.weight_files import load_weights, save_weights

CustomObjectScope = custom_object_scope

__all__ = [
    "CustomObjectScope",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "load_model",
    "load_weights",
    "register_keras_serializable",
    "save_model",
    "save_weights",
    "serialize_keras_object",
]


def __getattr__(name: str) -> Any:
    # files need the models, which need this package
    if name in ("load_model", "save_model"):
        from pydtconv.models import model_files

        return getattr(model_files, name)
    if name in ("load_weights", "save_weights"):
        from pydtconv.models import weight_files

        return getattr(weight_files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
