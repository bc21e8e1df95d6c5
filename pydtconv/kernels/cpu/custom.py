"""Operators whose functions are Python's: they run as they are, with checks of what they return."""

from __future__ import annotations

import numpy as np

from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.registry import ANY, register
from pydtconv.ops.custom import NumpyOp


@register(NumpyOp, dtypes=ANY)
class NumpyOpKernel(Kernel[NumpyOp]):
    """What the functions return is checked and copied to where the plan wants it."""

    def forward(self, p: Pass) -> Call:
        x, y = tuple(p.x), p.y[0]

        def run() -> None:
            result = np.asarray(self.op.forward_function(*x))
            if result.shape != y.shape:
                raise ValueError(f"{self.op.label}: forward: expected an array of shape {y.shape}, got {result.shape}")
            y[...] = result

        return run

    def backward(self, p: Pass) -> Call:
        if self.op.backward_function is None:
            raise NotImplementedError(f"{self.op.label}: has no backward function, but its gradient is wanted")
        x, y, dy, backward = tuple(p.x), p.y[0], p.dy[0], self.op.backward_function
        shapes = [None if dx is None else dx.shape for dx in p.dx]

        def run() -> None:
            result = backward(dy, *x, y)
            gradients = result if isinstance(result, (tuple, list)) else (result,)
            self.op.check_gradients([None if each is None else np.shape(each) for each in gradients], shapes)
            for i, (dx, gradient) in enumerate(zip(p.dx, gradients, strict=True)):
                if dx is None:
                    continue
                value = np.zeros(dx.shape, dx.dtype) if gradient is None else np.asarray(gradient)
                if p.adds(i):
                    dx += value
                else:
                    dx[...] = value

        return run
