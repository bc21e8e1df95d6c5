"""`serialize` of layers, with Keras's argument names."""

from __future__ import annotations

from typing import Any

from pydtconv.serialization.objects import serialize_keras_object


def serialize(layer: Any) -> Any:
    """The layer's class and config as plain data."""
    return serialize_keras_object(layer)
