"""`keras.backend`'s names: settings of the process and names of objects."""

from typing import Any

import numpy as np

from pydtconv.config import (
    backend,
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from pydtconv.layers.base.symbolic import is_keras_tensor
from pydtconv.naming import get_uid
from pydtconv.ops.table_op import promoted
from pydtconv.suggest import refusal
from pydtconv.support.sequences import standardize_dtype
from pydtconv.support.session import clear_session


def int_shape(x: Any) -> tuple[int | None, ...]:
    """The shape of a tensor or array; None where the extent is not known."""
    return tuple(x.shape)


def is_float_dtype(dtype: Any) -> bool:
    """Whether a dtype is of floating-point numbers."""
    return standardize_dtype(dtype) == "bfloat16" or np.dtype(standardize_dtype(dtype)).kind == "f"


def is_int_dtype(dtype: Any) -> bool:
    """Whether a dtype is of whole numbers."""
    return standardize_dtype(dtype) != "bfloat16" and np.dtype(standardize_dtype(dtype)).kind in "iu"


def result_type(*dtypes: Any) -> str:
    """The common dtype of operands, by Keras's rules; Python's int and float become what they meet."""
    given = [dtype for dtype in dtypes if dtype is not int and dtype is not float]
    common = promoted([standardize_dtype(getattr(dtype, "dtype", dtype)) for dtype in given]) if given else "bool"
    whole = common == "bool" or is_int_dtype(common)
    if not dtypes or (whole and any(dtype is float for dtype in dtypes)):
        return floatx()
    return "int32" if common == "bool" and any(dtype is int for dtype in dtypes) else common


__all__ = [
    "backend",
    "clear_session",
    "epsilon",
    "floatx",
    "get_uid",
    "image_data_format",
    "int_shape",
    "is_float_dtype",
    "is_int_dtype",
    "is_keras_tensor",
    "result_type",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
    "standardize_dtype",
]

__getattr__ = refusal(__name__, __all__)
