"""Activations as ONNX nodes, by the rows of `ops.kinds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.dtypes import real
from pydtconv.graph import Tensor
from pydtconv.interchange.onnx_writer import Writer
from pydtconv.ops import kinds


def activation(writer: Writer, like: Tensor, x: str, kind: str | None, *parameters: float | None) -> str:
    """The name of f(x); like: a tensor of x's dtype.  None for a parameter: its default."""
    if kind is None:
        return x
    dtype = real(like.dtype)

    def emit(operator: str, *values: Any, **attributes: Any) -> str:
        names = [v if isinstance(v, str) else writer.constant(np.array(v, dtype)) for v in values]
        return writer.emit(operator, *names, **attributes)

    return kinds.ROWS[kind].onnx(emit, x, *kinds.given(kind, *parameters))
