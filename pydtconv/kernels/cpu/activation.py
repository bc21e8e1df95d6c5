"""Element-wise functions of one argument, and the bias addition; their table is cext/cuda/activations.h."""

from __future__ import annotations

from functools import partial

import numpy as np

from pydtconv._ext import elem, wire
from pydtconv.conv.activations import CODES
from pydtconv.dtypes import BFLOAT16, from_bits, itemsize, to_bits
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.rows import real_of
from pydtconv.kernels.cpu.strided import bind_copy, bind_reduce, flat, layout, reduction_workspace
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.activation import Activation, Bias
from pydtconv.ops.base import Spec


def _as_reals(kind: str, params: tuple[float, float, float], image: np.ndarray) -> np.ndarray:
    """Parameters for an image; bounds of "clip" as its dtype holds them: backward asks which x are between."""
    reals = np.array(params, real_of(image))
    return from_bits(to_bits(reals)) if kind == "clip" and image.dtype == np.uint16 else reals


def bind_unary(kind: str, params: tuple[float, float, float], x: np.ndarray, y: np.ndarray) -> Call:
    """y = f(x); y may be x."""
    p = _as_reals(kind, params, x)
    call: Call = elem.bind_unary(CODES[kind], p, layout(y.shape, x, y), flat(x), flat(y))
    return call


def bind_unary_backward(
    kind: str,
    params: tuple[float, float, float],
    v: np.ndarray,
    dy: np.ndarray,
    dx: np.ndarray,
    accumulate: bool = False,
) -> Call:
    """dx (+)= dy f'(v), v = y or x as the kind says; dx may be dy."""
    p = _as_reals(kind, params, dy)
    places = layout(dx.shape, v, dy, dx)
    call: Call = elem.bind_unary_backward(CODES[kind], p, accumulate, places, flat(v), flat(dy), flat(dx))
    return call


def as_image(vector: np.ndarray, x: np.ndarray, workspace: np.ndarray | None) -> tuple[np.ndarray, Call]:
    """A parameter in the dtype of an image, and what makes it that: where x is bfloat16, in the workspace's start."""
    if vector.dtype == x.dtype:
        return vector, nothing
    assert workspace is not None
    rounded = workspace[: vector.size * x.itemsize].view(x.dtype)
    return rounded, partial(wire.to_bfloat16, vector, rounded)


@register(Activation, dtypes=IMAGES)
class ActivationKernel(Kernel[Activation]):
    """dx comes from y where the kind's derivative does, else from x."""

    def forward(self, p: Pass) -> Call:
        return bind_unary(self.op.kind, self.op.parameters, p.x[0], p.y[0])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        v = p.y[0] if p.y[0] is not None else p.x[0] if p.x[0] is not None else p.dy[0]
        return bind_unary_backward(self.op.kind, self.op.parameters, v, p.dy[0], p.dx[0], p.adds(0))


@register(Bias, dtypes=IMAGES)
class BiasKernel(Kernel[Bias]):
    """One pass forward; backward sums dy's rows for db."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        shape = inputs[0].shape
        if direction == "backward":
            return reduction_workspace(shape, range(len(shape) - 1), inputs[0].dtype)
        return inputs[1].size * itemsize(BFLOAT16) if inputs[0].dtype == BFLOAT16 else 0

    def forward(self, p: Pass) -> Call:
        x, b = p.x
        y = p.y[0]
        rounded, to_image = as_image(b, x, p.workspace)
        none = np.zeros(3, real_of(x))
        add = elem.bind_add_activation(0, none, layout(y.shape, x, rounded, y), flat(x), flat(rounded), flat(y))
        return sequence([to_image, add])

    def backward(self, p: Pass) -> Call:
        dy, calls = p.dy[0], []
        if p.dx[1] is not None:
            db = p.dx[1].reshape((1,) * (dy.ndim - 1) + (-1,))
            calls.append(bind_reduce("sum", range(dy.ndim - 1), dy, db, p.workspace, accumulate=p.adds(1)))
        if p.dx[0] is not None:
            calls.append(bind_copy(dy, p.dx[0], accumulate=p.adds(0)))
        return sequence(calls)
