"""Recurrent layers through all steps in C (cext/nn/recurrence_forward.c, recurrence_backward.c)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pydtconv import (
    dtypes,
    microkernels,  # noqa: F401  (puts the choice of a kernel in place)
)
from pydtconv._ext import recurrence as ext
from pydtconv.conv.activations import CODES
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.linear import bind_gemm, bind_weights, gemm_bytes, weights_bytes
from pydtconv.kernels.cpu.strided import bind_reduce, reduction_workspace
from pydtconv.kernels.registry import register
from pydtconv.ops.activation import parameters
from pydtconv.ops.base import Spec
from pydtconv.ops.recurrence import GATES, Recurrence


def _in_lines(count: int) -> int:
    return -(-count // 64) * 64


@register(Recurrence)
class RecurrenceKernel(Kernel[Recurrence]):
    """Each thread takes some samples through all steps; the gradient of the weights is one product of all steps."""

    def _room(self, *inputs: Spec) -> tuple[int, int]:
        """Bytes of the mask, where it is no array of booleans, and of the gradients that `side` is."""
        n, steps, units = self.op.sizes(*inputs)
        mask = n * steps if self.op.has_mask and inputs[self.op.places["mask"]].dtype != "bool" else 0
        side = n * steps * units * dtypes.itemsize(inputs[0].dtype) if self.op.cell == "gru" else 0
        return _in_lines(mask), _in_lines(side)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        (n, steps, units), dtype = self.op.sizes(*inputs), inputs[0].dtype
        backward = direction == "backward"
        mask, side = self._room(*inputs)
        need = ext.workspace_bytes(n, steps, units, self.op.cell, dtype, backward)
        if not backward:
            return mask + int(need)
        columns = GATES[self.op.cell] * units
        sums = reduction_workspace((n * steps, columns), (0,), dtype) if self.op.has_bias else 0
        products = max(weights_bytes(n * steps, units, columns, dtype), gemm_bytes(units, columns, n * steps, dtype))
        return mask + side + max(int(need), products, sums)

    def _bind(self, backward: bool, p: Pass, arrays: dict[str, Any], room: int) -> Call:
        """The pass in C; room: bytes of the workspace that are taken."""
        op = self.op
        n, steps = arrays["z" if not backward else "dz"].shape[:2]
        mask, convert, workspace = None, nothing, p.workspace
        assert workspace is not None
        if op.has_mask:
            given = p.x[op.places["mask"]]
            if given.dtype == np.bool_:
                mask = given.view(np.uint8)
            else:
                mask = workspace[: n * steps].reshape(n, steps)
                convert = partial(np.not_equal, given, 0, out=mask.view(np.bool_))
        kinds = (
            (CODES[kind], *parameters(kind, None, None, None)) for kind in (op.state_activation, op.gate_activation)
        )
        options = op.backwards, op.sequences, op.zero_output
        shape = n, steps, arrays["w"].shape[0]
        return sequence([convert, ext.bind(backward, shape, op.cell, options, *kinds, mask, arrays, workspace[room:])])

    def forward(self, p: Pass) -> Call:
        if not p.x[0].size:
            return nothing
        arrays = {name: p.x[i] for name, i in self.op.places.items() if name != "mask"}
        arrays |= dict(zip(("y", "h", "c"), p.y, strict=False))
        mask = _in_lines(p.x[0].shape[0] * p.x[0].shape[1]) if self._converts(p) else 0
        return self._bind(False, p, arrays | dict(p.saved), mask)

    def _converts(self, p: Pass) -> bool:
        return self.op.has_mask and p.x[self.op.places["mask"]].dtype != np.bool_

    def backward(self, p: Pass) -> Call:
        op, saved, places = self.op, p.saved, self.op.places
        n, steps, units = saved["previous"].shape
        w, width = p.x[1], p.x[1].shape[1]
        if not n:
            return sequence([partial(dx.fill, 0) for i, dx in enumerate(p.dx) if dx is not None and not p.adds(i)])
        dz = np.empty((n, steps, width), w.dtype) if p.dx[0] is None else p.dx[0]
        at = _in_lines(n * steps) if self._converts(p) else 0
        side = None
        if op.cell == "gru":
            assert p.workspace is not None
            count = n * steps * units * w.itemsize
            side = p.workspace[at : at + count].view(w.dtype).reshape(n * steps, units)
            at += _in_lines(count)
        arrays = {"w": w, "dz": dz, "side": side, **saved, "c0": p.x[places["c0"]] if "c0" in places else None}
        arrays |= dict(zip(("dy", "dh", "dc"), p.dy, strict=False))
        arrays |= {f"d{name}": p.dx[places[name]] for name in ("h0", "c0") if name in places}
        calls = [self._bind(True, p, arrays, at)]
        rest = None if p.workspace is None else p.workspace[at:]
        previous, rows = saved["previous"].reshape(-1, units), dz.reshape(-1, width)
        parts = [(slice(0, width), previous, rows)]
        if op.cell.startswith("gru"):
            gates = saved["gates"].reshape(n * steps, -1)
            inner = (previous, side) if side is not None else (gates[:, 3 * units :], rows[:, 2 * units :])
            parts = [(slice(0, 2 * units), previous, rows[:, : 2 * units]), (slice(2 * units, width), *inner)]
        for columns, x, dy in parts:
            if p.dx[1] is not None and len(parts) == 1:
                calls.append(bind_weights(x, dy, p.dx[1], rest, p.adds(1)))
            elif p.dx[1] is not None:
                calls.append(bind_gemm(x.T, dy, p.dx[1][:, columns], rest, p.adds(1)))
            if op.has_bias and p.dx[places["b"]] is not None:
                calls.append(bind_reduce("sum", (0,), dy, p.dx[places["b"]][None, columns], rest))
        return sequence(calls)
