"""`keras.backend`'s names: settings of the process and names of objects."""

from typing import Any

from pydtconv.config import (
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from pydtconv.layers.symbolic import is_keras_tensor
from pydtconv.naming import get_uid
from pydtconv.utils.session import clear_session
from pydtconv.utils.suggest import refusal


def backend() -> str:
    """ "pydtconv"."""
    return "pydtconv"


def int_shape(x: Any) -> tuple[int | None, ...]:
    """The shape of a tensor or array; None where the extent is not known."""
    return tuple(x.shape)


__all__ = [
    "backend",
    "clear_session",
    "epsilon",
    "floatx",
    "get_uid",
    "image_data_format",
    "int_shape",
    "is_keras_tensor",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]

__getattr__ = refusal(__name__, __all__)
