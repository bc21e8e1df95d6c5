"""What functions are applied to: symbolic values as they are, anything else as float arrays."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.ops.activation import Activation
from pydtconv.ops.checks import FLOATS


def is_symbolic(x: Any) -> bool:
    return hasattr(x, "apply_op")


def is_scalar(x: Any) -> bool:
    return isinstance(x, Real) or (isinstance(x, np.ndarray) and x.ndim == 0)


def as_operand(x: Any, dtype: str | None = None) -> Any:
    """x as an operand: symbolic values as they are, others as float arrays."""
    if is_symbolic(x):
        return x
    array = np.asarray(x)
    return array.astype(dtype or (array.dtype if array.dtype.name in FLOATS else config.floatx()), copy=False)


def of_one_dtype(*xs: Any) -> tuple[Any, ...]:
    """Operands of one dtype: that of the first symbolic or float one."""
    dtypes = [np.dtype(x.dtype).name for x in xs if is_symbolic(x)]
    dtypes += [x.dtype.name for x in xs if isinstance(x, np.ndarray) and x.dtype.name in FLOATS]
    return tuple(as_operand(x, dtypes[0] if dtypes else config.floatx()) for x in xs)


def unary(kind: str, x: Any, *parameters: float | None) -> Any:
    return Activation(kind, *parameters)(as_operand(x))
