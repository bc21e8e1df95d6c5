"""Separable convolutions: the depthwise result is made in a thread's cache, in forward and for the pointwise filters.

In backward_data its gradient lies in the workspace: the pointwise convolution's writes it, the depthwise one's read it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pydtconv._ext import conv as conv_ext
from pydtconv._ext import norm
from pydtconv._ext import separable as ext
from pydtconv.conv.activations import FUSED
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.arrays import as_planes, check_dense, pixel_stride
from pydtconv.conv.bound_passes import AFTER_NORMALIZATION, Normalization, bind, run
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import choose, workspace_bytes
from pydtconv.kernels.base import Call, Pass, Prologue, in_parts, nothing, scratch, sequence
from pydtconv.kernels.cpu.convolution import MeasuredConvKernel
from pydtconv.kernels.cpu.moments import moments_in
from pydtconv.kernels.cpu.rows import spec_of
from pydtconv.kernels.registry import register
from pydtconv.ops.base import Spec
from pydtconv.ops.separable_convolution import SeparableConv

DEPTHWISE = "depthwise"


def can_be_made(p: ConvProblem, co: int) -> bool:
    """Whether a thread can make the result of a depthwise convolution row by row, for a pointwise one of co filters."""
    return p.dtype != "bfloat16" and bool(ext.fits(p.sizes, co, p.dtype))


@register(SeparableConv)
class SeparableConvKernel(MeasuredConvKernel[SeparableConv]):
    """Its passes are those of cext/conv/separable.c, and for the gradient of x those of both convolutions."""

    @property
    def works_in_blocks(self) -> bool:
        return False

    @property
    def splits_backward(self) -> bool:
        return False

    def takes_prologue(self, activation: str | None, backward: bool, *inputs: Spec) -> bool:
        return TABLE[DEPTHWISE].normalizes_in(self.op.problem(*inputs[:2]), activation)

    def gathers_reductions(self, *inputs: Spec) -> bool:
        return TABLE[DEPTHWISE].gathers_reductions(self.op.problem(*inputs[:2]))

    def bypasses_normalization(self, *inputs: Spec) -> bool:
        return False

    def workspace(self, direction: str, *inputs: Spec) -> int:
        deep, point = self.op.problem(*inputs[:2]), self.op.pointwise_problem(*inputs[:3])
        if direction == "forward":
            return int(ext.workspace_bytes(deep.sizes, point.co, "forward", deep.dtype))
        bias = self.op.bias_of(inputs)
        of_bias = 0 if bias is None else conv_ext.bias_backward_workspace(bias.size, deep.dtype)
        return max(of_bias, self._backward_workspace(deep, point))

    def _backward_workspace(self, deep: ConvProblem, point: ConvProblem) -> int:
        of_filters = ext.workspace_bytes(deep.sizes, point.co, "backward_weights", deep.dtype)
        of_data = [workspace_bytes(point, "backward_data", self._of_data(point))]
        of_data += [workspace_bytes(deep, role, DEPTHWISE) for role in ("backward_data", "backward_weights")]
        return max(of_filters, _aligned(Spec(point.x_shape, point.dtype)) + max(of_data))

    def _of_data(self, point: ConvProblem) -> str:
        return choose(point, "backward_data", None, self.op.variant).algorithm

    def _bound(self, p: Pass, direction: str, w: np.ndarray, y: np.ndarray, **more: Any) -> Callable[..., int]:
        x, d = p.x[:2]
        for value, name in ((d, "d"), (w, "w")):
            check_dense(value, name)
        if p.prologue is not None:
            more["prologue"] = _coded(_through(p.prologue))
        strides = pixel_stride(x, "x"), pixel_stride(y, "y")
        sizes = self._problem_of(x, d).sizes
        call: Callable[..., int] = ext.bind(
            sizes, direction, as_planes(x), d.reshape(-1), w.reshape(-1), as_planes(y), *strides, **more
        )
        return call

    def _between(self, p: Pass) -> tuple[Normalization | None, Call]:
        """What t is normalized with, and the call that finds it."""
        between = self.op.between
        if between is None:
            return None, nothing
        parameters = [None, *self.op.between_of(p.x)]  # as if t were there
        mean, variance = (parameters[i] for i in between.state)
        inverse, scale = p.saved["between_inverse"], p.saved["between_scale"]
        gamma, beta = parameters[1] if between.scale else None, between.beta_of(parameters)
        find = norm.bind_coefficients(variance, gamma, between.epsilon, inverse, scale)
        return (mean, scale, beta, between.activation), find

    def forward(self, p: Pass) -> Call:
        between, find_between = self._between(p)
        scale, find_scale = self._scale(p)
        mean, variance = moments_in(p.y[1]) if len(p.y) > 1 else (None, None)
        residual = self.op.residual_of(p.x)
        call = self._bound(
            p,
            "forward",
            p.x[2],
            p.y[0],
            bias=self.op.bias_of(p.x) if scale is None else p.saved["offset"],
            activation=FUSED[self.op.activation],
            alpha=self.op.alpha,
            mean=mean,
            variance=variance,
            residual=None if residual is None else as_planes(residual),
            ldr=0 if residual is None else pixel_stride(residual, "residual"),
            scale=scale,
            between=None if between is None else _coded(between),
        )
        need = self.workspace("forward", *map(spec_of, p.x[:3]))
        return sequence([find_between, find_scale, in_parts({"forward": _in_scratch(call, p.workspace, need)}, p.run)])

    def backward(self, p: Pass) -> Call:
        if self.op.between is not None:
            raise NotImplementedError(f"{self.op.name} has no gradient: plans make it for predictions alone")
        deep, point = self._problems(p)
        need = max(self._finish_backward(p, p.dy[0])[1], self._backward_workspace(deep, point))
        if p.workspace is not None and p.workspace.size >= need:
            return self._backward(p, deep, point)

        def transient() -> None:
            self._backward(dataclasses.replace(p, workspace=scratch(need)), deep, point)()

        return transient

    def _problems(self, p: Pass) -> tuple[ConvProblem, ConvProblem]:
        """Both convolutions, of arrays of which some may be missing."""
        x, d, w = (given if given is not None else wanted for given, wanted in zip(p.x[:3], p.dx[:3], strict=True))
        if x is None or d is None or w is None:
            raise ValueError(f"{self.op.name}: expected x, d and w or their gradients, got {p.x[:3]} and {p.dx[:3]}")
        specs = spec_of(x), spec_of(d), spec_of(w)
        return self.op.problem(*specs[:2]), self.op.pointwise_problem(*specs)

    def _backward(self, p: Pass, deep: ConvProblem, point: ConvProblem) -> Call:
        """The workspace is there."""
        finish, _ = self._finish_backward(p, p.dy[0])
        calls: dict[str, Call] = {name: partial(run, call, p.workspace) for name, call in finish.items()}
        dx, dd, dw = p.dx[:3]
        if dw is not None:
            calls["backward_weights"] = partial(run, self._bound(p, "backward_weights", dw, p.dy[0]), p.workspace)
        if dx is not None or dd is not None:
            calls["backward_data"] = self._data(p, deep, point)
        return in_parts(calls, p.run)

    def _data(self, p: Pass, deep: ConvProblem, point: ConvProblem) -> Call:
        """The gradient of the depthwise result, then those of its filters and of x."""
        assert p.workspace is not None
        spec = Spec(point.x_shape, point.dtype)
        dt, rest = p.workspace[: spec.nbytes].view(spec.dtype).reshape(point.x_shape), p.workspace[_aligned(spec) :]
        dx, dd = p.dx[:2]
        calls = [bind(point, "backward_data", self._of_data(point), dt, p.x[2], p.dy[0])]
        if dd is not None:
            through = None if p.prologue is None else _through(p.prologue)
            filters = dd.reshape(deep.w_shape)
            calls.append(bind(deep, "backward_weights", DEPTHWISE, p.x[0], filters, dt, prologue=through))
        if dx is not None:
            sums, filters, adds = p.reductions, p.x[1].reshape(deep.w_shape), p.adds(0)
            gathered = None if sums is None else (sums.x, _through(sums.prologue), *moments_in(sums.sums))
            calls.append(bind(deep, "backward_data", DEPTHWISE, dx, filters, dt, accumulate=adds, reductions=gathered))
        return sequence([partial(run, call, rest) for call in calls])


def _through(prologue: Prologue) -> Normalization:
    return prologue.mean, prologue.scale, prologue.beta, prologue.activation


def _coded(normalization: Normalization) -> tuple[Any, ...]:
    *vectors, activation = normalization
    return *vectors, AFTER_NORMALIZATION[activation]


def _aligned(spec: Spec) -> int:
    """Bytes of an array, up to a whole line of cache."""
    return -(-spec.nbytes // 64) * 64


def _in_scratch(call: Callable[..., int], workspace: np.ndarray | None, need: int) -> Call:
    """A bound pass with the workspace that was placed for it, else with one of its own in each call."""
    if workspace is not None and workspace.size >= need:
        return partial(run, call, workspace)
    return lambda: run(call, scratch(need))
