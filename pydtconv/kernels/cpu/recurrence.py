"""Recurrent layers through all steps in C (cext/nn/recurrence_forward.c, recurrence_backward.c)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from pydtconv.ops.recurrence import GATES, BothDirections, Recurrence


def _in_lines(count: int) -> int:
    return -(-count // 64) * 64


class _Room:
    """Parts of a workspace, one behind the other.  rest: what is left."""

    def __init__(self, workspace: np.ndarray | None) -> None:
        self.rest: Any = workspace

    def take(self, nbytes: int) -> Any:
        taken, self.rest = self.rest[:nbytes], self.rest[_in_lines(nbytes) :]
        return taken


@register(Recurrence)
@register(BothDirections)
class RecurrenceKernel(Kernel[Any]):
    """Each thread takes some samples through all steps; the gradient of the weights is one product of all steps."""

    def _room(self, op: Recurrence, *inputs: Spec) -> tuple[int, int]:
        """Bytes of the mask, where it is no array of booleans, and of the gradients that `side` is."""
        n, steps, units = op.sizes(*inputs)
        mask = n * steps if op.has_mask and inputs[op.places["mask"]].dtype != "bool" else 0
        side = n * steps * units * dtypes.itemsize(inputs[0].dtype) if op.cell == "gru" else 0
        return _in_lines(mask), _in_lines(side)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        parts, dtype = self.op.of_parts(inputs), inputs[0].dtype
        op, own = parts[0]
        n, steps, units = op.sizes(*own)
        backward = direction == "backward"
        mask, side = (sum(sizes) for sizes in zip(*(self._room(op, *own) for op, own in parts), strict=True))
        need = int(ext.workspace_bytes(n, steps, units, op.cell, dtype, len(parts), backward))
        if not backward:
            return mask + need
        columns = GATES[op.cell] * units
        sums = reduction_workspace((n * steps, columns), (0,), dtype) if any(op.has_bias for op, _ in parts) else 0
        products = max(weights_bytes(n * steps, units, columns, dtype), gemm_bytes(units, columns, n * steps, dtype))
        return mask + side + max(need, products, sums)

    def _parts(self, p: Pass) -> Iterator[tuple[Recurrence, Pass]]:
        """Each recurrence with its part of a pass."""
        if isinstance(self.op, Recurrence):
            yield self.op, p
            return
        at = out = 0
        for i, op in enumerate((self.op.first, self.op.second)):
            x, y = slice(at, at + len(op.places)), slice(out, out + 1 + op.state_count)
            saved = {name[:-1]: array for name, array in p.saved.items() if name[-1] == str(i)}
            adds = p.accumulate[x]
            yield op, replace(p, x=p.x[x], dx=p.dx[x], accumulate=adds, y=p.y[y], dy=p.dy[y], saved=saved)
            at, out = x.stop, y.stop

    def _bind(self, backward: bool, parts: Sequence[tuple[Recurrence, Pass, dict[str, Any]]], room: _Room) -> Call:
        """The pass in C."""
        calls, bound = [], []
        for op, p, arrays in parts:
            n, steps = arrays["dz" if backward else "z"].shape[:2]
            mask = None
            if op.has_mask:
                given = p.x[op.places["mask"]]
                mask = given.view(np.uint8) if given.dtype == np.bool_ else room.take(n * steps).reshape(n, steps)
                if given.dtype != np.bool_:
                    calls.append(partial(np.not_equal, given, 0, out=mask.view(np.bool_)))
            kinds = (
                (CODES[kind], *parameters(kind, None, None, None)) for kind in (op.state_activation, op.gate_activation)
            )
            bound.append(((op.backwards, op.sequences, op.zero_output), *kinds, mask, arrays))
        shape = n, steps, arrays["w"].shape[0]
        return sequence([*calls, ext.bind(backward, shape, op.cell, tuple(bound), room.rest)])

    def forward(self, p: Pass) -> Call:
        if not p.x[0].size:
            return nothing
        parts = []
        for op, own in self._parts(p):
            arrays = {name: own.x[i] for name, i in op.places.items() if name != "mask"}
            arrays |= dict(zip(("y", "h", "c"), own.y, strict=False))
            parts.append((op, own, arrays | dict(own.saved)))
        return self._bind(False, parts, _Room(p.workspace))

    def backward(self, p: Pass) -> Call:
        room, parts = _Room(p.workspace), []
        for op, own in self._parts(p):
            saved, places, w = own.saved, op.places, own.x[1]
            n, steps, units = saved["previous"].shape
            if not n:
                return sequence([partial(dx.fill, 0) for i, dx in enumerate(p.dx) if dx is not None and not p.adds(i)])
            dz = np.empty((n, steps, w.shape[1]), w.dtype) if own.dx[0] is None else own.dx[0]
            side = None
            if op.cell == "gru":
                side = room.take(n * steps * units * w.itemsize).view(w.dtype).reshape(n * steps, units)
            arrays = {"w": w, "dz": dz, "side": side, **saved, "c0": own.x[places["c0"]] if "c0" in places else None}
            arrays |= dict(zip(("dy", "dh", "dc"), own.dy, strict=False))
            arrays |= {f"d{name}": own.dx[places[name]] for name in ("h0", "c0") if name in places}
            parts.append((op, own, arrays))
        calls = [self._bind(True, parts, room)]
        for op, own, arrays in parts:
            calls += _gradients(op, own, arrays, room.rest)
        return sequence(calls)


def _gradients(op: Recurrence, p: Pass, arrays: dict[str, Any], workspace: Any) -> Iterator[Call]:
    """Of the recurrent weights and of their bias, from what the pass in C has left."""
    w, side = arrays["w"], arrays["side"]
    units, width = w.shape
    previous, rows = arrays["previous"].reshape(-1, units), arrays["dz"].reshape(-1, width)
    parts = [(slice(0, width), previous, rows)]
    if op.cell.startswith("gru"):
        gates = arrays["gates"].reshape(len(rows), -1)
        inner = (previous, side) if side is not None else (gates[:, 3 * units :], rows[:, 2 * units :])
        parts = [(slice(0, 2 * units), previous, rows[:, : 2 * units]), (slice(2 * units, width), *inner)]
    for columns, x, dy in parts:
        if p.dx[1] is not None and len(parts) == 1:
            yield bind_weights(x, dy, p.dx[1], workspace, p.adds(1))
        elif p.dx[1] is not None:
            yield bind_gemm(x.T, dy, p.dx[1][:, columns], workspace, p.adds(1))
        if op.has_bias and p.dx[op.places["b"]] is not None:
            yield bind_reduce("sum", (0,), dy, p.dx[op.places["b"]][None, columns], workspace)
