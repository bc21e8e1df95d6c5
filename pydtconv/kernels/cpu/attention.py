"""Attention in tiles (cext/nn/attention_forward.c, attention_backward.c)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import attention as ext
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.random import bind_random
from pydtconv.kernels.cpu.rows import flat_of
from pydtconv.kernels.cpu.shape import bind_fill
from pydtconv.kernels.cpu.strided import typed
from pydtconv.kernels.registry import register
from pydtconv.ops.attention import Attention
from pydtconv.ops.base import Spec


@register(Attention)
class AttentionKernel(Kernel[Attention]):
    """Heads are read where they lie; scores are in cache alone, and dropout is drawn anew in backward."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        sizes = self.op.sizes(*inputs)
        if min(sizes) == 0:
            return 0
        converts = len(inputs) > 3 and inputs[3].dtype != "bool" and None not in inputs[3].shape
        mask = -(-inputs[3].size // 64) * 64 if converts else 0
        return mask + int(ext.attention_workspace(sizes, inputs[0].dtype, direction == "backward"))

    def _bind(self, function: Callable[..., None], p: Pass, *arrays: Any) -> Call:
        q, k, v = p.x[:3]
        mask, convert, workspace = self._mask(p)
        rate = self.op.rate if p.training or self.op.always else 0.0
        per_sample = q.shape[2] * q.shape[1] * k.shape[1]
        fixed = (rate, self.op.factor(q.shape[3]), self.op.causal, self.op.zero_empty, q, k, v, mask)
        call = typed(function, q.dtype)
        if not rate:
            return sequence([convert, partial(call, 0, 0, 0, 0, *fixed, *arrays, workspace)])
        return sequence([convert, bind_random(call, p, self.op.seed, per_sample, *fixed, *arrays, workspace)])

    def _mask(self, p: Pass) -> tuple[np.ndarray | None, Call, np.ndarray]:
        """The mask as bytes, what brings it there, and the rest of the workspace."""
        workspace = p.workspace
        assert workspace is not None
        if len(p.x) < 4:
            return None, nothing, workspace
        mask = p.x[3]
        if mask.dtype == np.bool_:
            return mask.view(np.uint8), nothing, workspace
        place = workspace[: mask.size].reshape(mask.shape)
        convert = partial(np.not_equal, mask, 0, out=place.view(np.bool_))
        return place, convert, workspace[-(-mask.size // 64) * 64 :]

    def forward(self, p: Pass) -> Call:
        y, sums = p.y[0], flat_of(p.saved["sums"])
        if min(y.size, p.x[0].size, p.x[1].size) == 0:
            return bind_fill(y, 0) if y.size else nothing
        return self._bind(ext.attention_forward, p, y, sums)

    def backward(self, p: Pass) -> Call:
        dq, dk, dv = p.dx[:3]
        y, sums = p.y[0], flat_of(p.saved["sums"])
        if min(y.size, p.x[0].size, p.x[1].size) == 0:
            gradients = [dx for i, dx in enumerate((dq, dk, dv)) if dx is not None and dx.size and not p.adds(i)]
            return sequence([bind_fill(dx, 0) for dx in gradients])
        adds = (p.adds(0), p.adds(1), p.adds(2))
        gradients = [part for pair in zip(adds, (dq, dk, dv), strict=True) for part in pair]
        return self._bind(ext.attention_backward, p, y, sums, p.dy[0], *gradients)
