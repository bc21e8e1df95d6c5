"""`keras.backend`'s names: settings of the process and names of objects."""

from pydtconv.config import (
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from pydtconv.layers.symbolic import is_keras_tensor
from pydtconv.naming import get_uid, reset_uids


def backend() -> str:
    """ "pydtconv"."""
    return "pydtconv"


def clear_session(free_memory: bool = True) -> None:
    """Lets automatic names begin anew (`conv2d`, `conv2d_1`, ...)."""
    reset_uids()


__all__ = [
    "backend",
    "clear_session",
    "epsilon",
    "floatx",
    "get_uid",
    "image_data_format",
    "is_keras_tensor",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]
