"""Operators applied to NumPy arrays at once, without a graph."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from pydtconv.kernels.base import Pass, scratch
from pydtconv.kernels.registry import find
from pydtconv.ops.base import Op, Spec, outputs_of, spec_of


def compute(op: Op, *inputs: Any, training: bool = False, device: str = "cpu") -> Any:
    """The op's forward on NumPy arrays; returns an array or a tuple of them."""
    arrays = [np.asarray(value, order="C") for value in inputs]
    specs = [spec_of(array) for array in arrays]
    y = [_empty(spec) for spec in outputs_of(op, *specs)]
    if op.is_view:
        return arrays[0].reshape(y[0].shape)
    kernel = find(op, device, op.kernel_dtype(*specs))
    saved = {key: _empty(spec) for key, spec in op.saves(*specs, training=training).items()}
    workspace = scratch(kernel.workspace("forward", *specs))
    kernel.forward(Pass(x=arrays, y=y, saved=saved, workspace=workspace, training=training))()
    return y[0] if len(y) == 1 else tuple(y)


def _empty(spec: Spec) -> np.ndarray:
    return np.empty(cast("tuple[int, ...]", spec.shape), spec.dtype)
