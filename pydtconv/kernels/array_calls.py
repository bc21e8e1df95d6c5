"""Operators applied to NumPy arrays at once, without a graph."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from pydtconv import config, hooks
from pydtconv.dtypes import in_memory
from pydtconv.hooks import as_result
from pydtconv.kernels.base import Pass, scratch
from pydtconv.kernels.lookup import find
from pydtconv.ops.base import Op, Spec, outputs_of, spec_of


@hooks.compute.fill
def compute(op: Op, *inputs: Any, training: bool = False, device: str = "cpu") -> Any:
    """The op's forward on NumPy arrays; returns an array or a tuple of them."""
    arrays = [x if type(x) is np.ndarray and x.flags.carray else np.require(x, requirements=["C", "A"]) for x in inputs]
    specs = [spec_of(array) for array in arrays]
    y = [_empty(spec) for spec in outputs_of(op, *specs)]
    if op.is_view:
        return as_result(arrays[0].reshape(y[0].shape))
    kernel = find(op, device, op.kernel_dtype(*specs))
    saved = {key: _empty(spec) for key, spec in op.saves(*specs, training=training).items()}
    with config.hold_num_threads():
        workspace = scratch(kernel.workspace("forward", *specs))
        kernel.forward(Pass(x=arrays, y=y, saved=saved, workspace=workspace, training=training))()
    return as_result(y[0]) if len(y) == 1 else tuple(map(as_result, y))


def _empty(spec: Spec) -> np.ndarray:
    return np.empty(cast("tuple[int, ...]", spec.shape), in_memory(spec.dtype))
