"""Small operators in plain NumPy that use every liberty the plan may take, and a reference that takes none.

The operators are honest about their class attributes but written so that a wrong plan shows: a backward that overwrites
dy fills it with garbage afterwards, nothing is retained that is not named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv.graph import Graph, Tensor
from pydtconv.kernels import Call, Kernel, Pass, register
from pydtconv.ops.base import Op, Retained, Spec


@dataclass(frozen=True)
class Scale(Op):
    """y = factor * x, in place both ways."""

    factor: float = 2.0
    inplace = (0,)
    inplace_backward = (0,)
    accumulates = (0,)

    def infer(self, x: Spec) -> Spec:
        return x


@register(Scale)
class ScaleKernel(Kernel[Scale]):
    def forward(self, p: Pass) -> Call:
        return lambda: np.multiply(p.x[0], self.op.factor, out=p.y[0])

    def backward(self, p: Pass) -> Call:
        def call() -> None:
            if p.accumulate[0]:
                p.dx[0][...] += self.op.factor * p.dy[0]
            else:
                np.multiply(p.dy[0], self.op.factor, out=p.dx[0])

        return call


@dataclass(frozen=True)
class Mix(Op):
    """y = tanh(x) * w over the last axis; retains x; backward destroys dy and cannot add to dx."""

    overwrites_dy = True

    def infer(self, x: Spec, w: Spec) -> Spec:
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0, 1))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        return {"t": inputs[0]}


@register(Mix)
class MixKernel(Kernel[Mix]):
    def workspace(self, direction: str, *inputs: Spec) -> int:
        return inputs[0].nbytes

    def forward(self, p: Pass) -> Call:
        def call() -> None:
            p.workspace[...] = 255
            p.saved["t"][...] = np.tanh(p.x[0])
            p.y[0][...] = p.saved["t"] * p.x[1]

        return call

    def backward(self, p: Pass) -> Call:
        def call() -> None:
            p.workspace[...] = 255
            x, w = p.x
            t = np.tanh(x)
            np.testing.assert_array_equal(t, p.saved["t"])
            if p.dx[1] is not None:
                part = (p.dy[0] * t).reshape(-1, t.shape[-1]).sum(0)
                p.dx[1][...] = part
            dx = p.dy[0] * w * (1 - t * t)
            p.dy[0][...] = 1e30
            if p.dx[0] is not None:
                p.dx[0][...] = dx

        return call


@dataclass(frozen=True)
class Tanh(Op):
    """y = tanh(x); retains y, over which backward writes dx."""

    replaces_y = (0,)

    def infer(self, x: Spec) -> Spec:
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(y=(0,))


@register(Tanh)
class TanhKernel(Kernel[Tanh]):
    def forward(self, p: Pass) -> Call:
        return lambda: np.tanh(p.x[0], out=p.y[0])

    def backward(self, p: Pass) -> Call:
        def call() -> None:
            slope = 1 - p.y[0] ** 2
            p.dx[0][...] = 1e30
            np.multiply(p.dy[0], slope, out=p.dx[0])

        return call


@dataclass(frozen=True)
class Sum2(Op):
    """y = a + b; dy is passed on to both."""

    passes_dy = (0, 1)
    inplace = (0, 1)

    def infer(self, a: Spec, b: Spec) -> Spec:
        return a


@register(Sum2)
class Sum2Kernel(Kernel[Sum2]):
    def forward(self, p: Pass) -> Call:
        return lambda: np.add(p.x[0], p.x[1], out=p.y[0])


@dataclass(frozen=True)
class SumRelu(Op):
    """y = relu(a + b); backward masks dy in place, then passes it on to both."""

    passes_dy = (0, 1)
    inplace = (0, 1)
    overwrites_dy = True

    def infer(self, a: Spec, b: Spec) -> Spec:
        return a

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(y=(0,))


@register(SumRelu)
class SumReluKernel(Kernel[SumRelu]):
    def forward(self, p: Pass) -> Call:
        def call() -> None:
            np.add(p.x[0], p.x[1], out=p.y[0])
            np.maximum(p.y[0], 0, out=p.y[0])

        return call

    def backward(self, p: Pass) -> Call:
        return lambda: np.multiply(p.dy[0], p.y[0] > 0, out=p.dy[0])


@dataclass(frozen=True)
class Minus(Op):
    """y = a - b; passes dy to a, negates it in place for b where that is allowed."""

    passes_dy = (0,)
    inplace_backward = (1,)
    inplace = (1,)

    def infer(self, a: Spec, b: Spec) -> Spec:
        return a


@register(Minus)
class MinusKernel(Kernel[Minus]):
    def forward(self, p: Pass) -> Call:
        return lambda: np.subtract(p.x[0], p.x[1], out=p.y[0])

    def backward(self, p: Pass) -> Call:
        return lambda: np.negative(p.dy[0], out=p.dx[1])


@dataclass(frozen=True)
class Join(Op):
    """Concatenation along the last axis."""

    axis: int = -1
    concatenates = True

    def infer(self, *inputs: Spec) -> Spec:
        return Spec((*inputs[0].shape[:-1], sum(spec.shape[-1] for spec in inputs)), inputs[0].dtype)


@register(Join)
class JoinKernel(Kernel[Join]):
    def forward(self, p: Pass) -> Call:
        return lambda: np.concatenate(p.x, axis=-1, out=p.y[0])

    def backward(self, p: Pass) -> Call:
        raise AssertionError("a concatenation of channels needs no backward")


@dataclass(frozen=True)
class View(Op):
    """Reshape to one dimension more or less, there and back."""

    shape: tuple[int, ...] = ()
    is_view = True

    def infer(self, x: Spec) -> Spec:
        return Spec(self.shape, x.dtype)


@dataclass(frozen=True)
class Total(Op):
    """Sum of squares / 2, a scalar."""

    def infer(self, x: Spec) -> Spec:
        return Spec((), x.dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0,))


@register(Total)
class TotalKernel(Kernel[Total]):
    def forward(self, p: Pass) -> Call:
        def call() -> None:
            p.y[0][...] = 0.5 * np.sum(np.square(p.x[0]))

        return call

    def backward(self, p: Pass) -> Call:
        return lambda: np.multiply(p.x[0], p.dy[0], out=p.dx[0])


def reference(graph: Graph, inputs: dict[str, np.ndarray]) -> tuple[dict[Tensor, np.ndarray], dict[Tensor, Any]]:
    """Values and gradients of a traced graph: every tensor an array of its own, gradients always added."""
    values: dict[Tensor, np.ndarray] = {graph.inputs[name]: array.astype(float) for name, array in inputs.items()}
    values.update({tensor: tensor.variable.value.copy() for tensor in graph.parameters})
    rules: dict[type, Callable[..., Any]] = {
        Scale: lambda op, x: (op.factor * x, lambda dy: [op.factor * dy]),
        Mix: lambda op, x, w: (
            np.tanh(x) * w,
            lambda dy: [dy * w * (1 - np.tanh(x) ** 2), (dy * np.tanh(x)).reshape(-1, x.shape[-1]).sum(0)],
        ),
        Tanh: lambda op, x: (np.tanh(x), lambda dy: [dy * (1 - np.tanh(x) ** 2)]),
        Sum2: lambda op, a, b: (a + b, lambda dy: [dy, dy]),
        SumRelu: lambda op, a, b: (np.maximum(a + b, 0), lambda dy: [dy * (a + b > 0)] * 2),
        Minus: lambda op, a, b: (a - b, lambda dy: [dy, -dy]),
        Join: lambda op, *xs: (
            np.concatenate(xs, -1),
            lambda dy: np.split(dy, np.cumsum([x.shape[-1] for x in xs])[:-1], axis=-1),
        ),
        View: lambda op, x: (x.reshape(op.shape), lambda dy: [dy.reshape(x.shape)]),
        Total: lambda op, x: (np.array(0.5 * np.sum(x * x)), lambda dy: [dy * x]),
    }
    pulls = {}
    for node in graph.nodes:
        values[node.outputs[0]], pulls[node] = rules[type(node.op)](node.op, *(values[t] for t in node.inputs))
    gradients: dict[Tensor, Any] = {graph.loss: np.array(1.0)} if graph.loss is not None else {}
    for node in reversed(graph.nodes):
        if node.outputs[0] in gradients:
            for tensor, part in zip(node.inputs, pulls[node](gradients[node.outputs[0]]), strict=True):
                gradients[tensor] = gradients.get(tensor, 0) + part
    return values, gradients
