"""Gradients through an activation whose slope follows from its output (cext/cuda/columns.cu)."""

from __future__ import annotations

from typing import Any

from pydtconv.conv.activations import CODES
from pydtconv.kernels.base import Call
from pydtconv.kernels.gpu.arrays import size_of


def bind_slope(launcher: Any, activation: str, alpha: float | None, y: Any, dy: Any) -> Call:
    """dy *= act'(y), in place."""
    rows, channels, lddy = size_of(dy)
    arguments = (rows, channels, CODES[activation], float(alpha or 0.0), y, size_of(y)[2], dy, lddy)
    return launcher.each("columns.slope", dy.dtype, dy.size, *arguments)
