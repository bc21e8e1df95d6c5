"""Convolution operators: Conv, DepthwiseConv, ConvTranspose, and functions with keras.ops' names.

Images are NHWC.  Each pass runs the algorithm of `pydtconv.conv` that the operator names, else that of a variant, else
the first of the ranking; bias and activation are part of the operator, so that they cost no sweep of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pydtconv import config
from pydtconv._ext import conv as ext
from pydtconv.conv.functional import ACTIVATIONS, bind, pixel_stride, run, scratch
from pydtconv.conv.problem import ConvProblem, pair
from pydtconv.conv.selection import Choice, choose, variant_of, workspace_bytes
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec

Algorithm = str | Mapping[str, str] | tuple[tuple[str, str], ...] | None


@dataclass(frozen=True)
class _ConvBase(Op):
    """What the three operators share: inputs (x, w) or (x, w, b), each pass of the operator being one of a convolution.

    padding: "valid", "same" or ((top, bottom), (left, right)).  activation: one whose derivative follows from y.
    algorithm: a name for every pass it has, or names by direction.  variant: None for the one in force.
    """

    strides: tuple[int, int] = (1, 1)
    padding: Any = "valid"
    dilation: tuple[int, int] = (1, 1)
    activation: str | None = None
    alpha: float = 0.0
    algorithm: Algorithm = None
    variant: str | None = None

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    dense_inputs: ClassVar[tuple[int, ...]] = (1,)
    takes_bias: ClassVar[bool] = True
    #: the convolution's pass that computes y, dx and dw
    passes: ClassVar[tuple[str, str, str]] = ("forward", "backward_data", "backward_weights")

    def __post_init__(self) -> None:
        object.__setattr__(self, "strides", pair(self.strides, "strides"))
        object.__setattr__(self, "dilation", pair(self.dilation, "dilation"))
        if isinstance(self.algorithm, Mapping):
            object.__setattr__(self, "algorithm", tuple(sorted(self.algorithm.items())))
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation: expected one of {', '.join(map(str, ACTIVATIONS))}, got {self.activation!r}")

    # -- what the plan asks ----------------------------------------------------------------------------------------

    @property
    def overwrites_dy(self) -> bool:  # type: ignore[override]
        return bool(ACTIVATIONS[self.activation])

    @property
    def persistent(self) -> bool:
        """Whether the plan places workspaces ahead; else each call allocates its own and frees it."""
        return variant_of(self.variant).persistent

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        """The convolution behind this operator; raises ValueError where shapes do not fit.  An unknown batch counts as 1."""
        raise NotImplementedError

    def choices(self, x: Spec, w: Spec, *rest: Spec) -> dict[str, Choice]:
        """The algorithm of each direction of the convolution, and why it was taken."""
        p = self.problem(x, w)
        algorithm = dict(self.algorithm) if isinstance(self.algorithm, tuple) else self.algorithm
        return {direction: choose(p, direction, algorithm, self.variant) for direction in self.passes}

    def algorithms_for(self, x: Spec, w: Spec, *rest: Spec) -> dict[str, str]:
        """The algorithm of each direction of the convolution: forward, backward_data, backward_weights."""
        return {direction: choice.algorithm for direction, choice in self.choices(x, w).items()}

    def infer(self, *inputs: Spec) -> Spec:
        x, w = self._check(inputs)
        p = self.problem(x, w)
        return Spec((x.shape[0], *self._output_shape(p)[1:]), x.dtype)

    def _output_shape(self, p: ConvProblem) -> tuple[int, int, int, int]:
        return p.y_shape

    def _check(self, inputs: tuple[Spec, ...]) -> tuple[Spec, Spec]:
        if len(inputs) not in (2, 3):
            raise ValueError(f"{self.name}: expected inputs x, w and perhaps b, got {len(inputs)} inputs")
        x, w = inputs[:2]
        for spec, what in ((x, "x"), (w, "w")):
            if len(spec.shape) != 4:
                raise ValueError(f"{self.name}: {what}: expected four dimensions, got shape {spec.shape}")
            if spec.dtype != x.dtype or spec.dtype not in ("float32", "float64"):
                raise ValueError(f"{self.name}: {what}: expected float32 or float64 as x has, got {spec.dtype}")
        if len(inputs) == 3:
            p = self.problem(x, w)
            filters = self._output_shape(p)[3]
            if inputs[2] != Spec((filters,), x.dtype):
                raise ValueError(f"{self.name}: b: expected shape ({filters},) of {x.dtype}, got {inputs[2].shape} of "
                                 f"{inputs[2].dtype}")
        return x, w

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        x = tuple(i for i, other in ((0, 1), (1, 0)) if needs[other])
        return Retained(x=x, y=(0,) if self.overwrites_dy else ())

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        p = self.problem(x, w)
        names = self.algorithms_for(x, w)
        directions = self.passes[:1] if direction == "forward" else self.passes[1:]
        need = max(workspace_bytes(p, which, names[which]) for which in directions)
        if direction == "backward" and len(inputs) == 3:
            need = max(need, ext.bias_backward_workspace(inputs[2].size, x.dtype == "float64"))
        return need

    # -- passes ----------------------------------------------------------------------------------------------------

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        """w or dw in the convolution's shape, as a view."""
        return w

    def forward(self, p: Pass) -> Call:
        problem = self._problem_of(p.x[0], p.x[1])
        name = self._algorithm(problem, "forward")
        call = bind(problem, "forward", name, p.x[0], self._filters(problem, p.x[1]), p.y[0],
                    bias=p.x[2] if len(p.x) > 2 else None, activation=self.activation, alpha=self.alpha)
        return in_order([call], p.workspace, workspace_bytes(problem, "forward", name))

    def backward(self, p: Pass) -> Call:
        dy, dx, dw = p.dy[0], p.dx[0], p.dx[1]
        calls, need = self._finish_backward(p, dy)
        if dw is not None:
            problem = self._problem_of(p.x[0], dw)
            name = self._algorithm(problem, "backward_weights")
            calls.append(bind(problem, "backward_weights", name, p.x[0], self._filters(problem, dw), dy))
            need = max(need, workspace_bytes(problem, "backward_weights", name))
        if dx is not None:
            problem = self._problem_of(dx, p.x[1])
            name = self._algorithm(problem, "backward_data")
            calls.append(bind(problem, "backward_data", name, dx, self._filters(problem, p.x[1]), dy,
                              accumulate=bool(p.accumulate and p.accumulate[0])))
            need = max(need, workspace_bytes(problem, "backward_data", name))
        return in_order(calls, p.workspace, need)

    def _problem_of(self, x: np.ndarray, w: np.ndarray) -> ConvProblem:
        return self.problem(Spec(x.shape, x.dtype.name), Spec(w.shape, w.dtype.name))

    def _algorithm(self, problem: ConvProblem, direction: str) -> str:
        algorithm = dict(self.algorithm) if isinstance(self.algorithm, tuple) else self.algorithm
        return choose(problem, direction, algorithm, self.variant).algorithm

    def _finish_backward(self, p: Pass, dy: np.ndarray) -> tuple[list[Callable[..., int]], int]:
        """What turns dy into that of the bare convolution and writes db, and the workspace it needs."""
        db = p.dx[2] if len(p.dx) > 2 else None
        code, alpha = ACTIVATIONS[self.activation], self.alpha
        if not code and db is None:
            return [], 0
        y = p.y[0] if code else None
        ldy, lddy = 0 if y is None else pixel_stride(y, "y"), pixel_stride(dy, "dy")

        def finish(workspace: np.ndarray | None) -> int:
            status: int = ext.bias_backward(dy, lddy, y, ldy, code, alpha, db, workspace)
            return status

        return [finish], 0 if db is None else ext.bias_backward_workspace(db.size, dy.dtype == np.float64)


def in_order(calls: list[Callable[..., int]], workspace: np.ndarray | None, need: int) -> Call:
    """One call of several passes that share the workspace; where none was placed, each call allocates and frees its own."""

    def placed() -> None:
        for call in calls:
            run(call, workspace)

    def transient() -> None:
        mine = scratch(need)
        for call in calls:
            run(call, mine)

    return placed if need == 0 or (workspace is not None and workspace.size >= need) else transient


def _no_fit(op: Op, expected: str, got: object) -> ValueError:
    return ValueError(f"{op.name}: w: expected {expected}, got {got}")


@dataclass(frozen=True)
class Conv(_ConvBase):
    """y = act(conv(x, w) + b); x (n, h, w, ci), w (kh, kw, ci // groups, co), b (co,)."""

    groups: int = 1

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        n, h, width, ci = x.shape
        kh, kw, inputs, co = w.shape
        if inputs is None or inputs * self.groups != ci:
            raise _no_fit(self, f"(kh, kw, {ci} / {self.groups} groups, filters) for x of shape {x.shape}", w.shape)
        return ConvProblem(n or 1, h, width, ci, co, (kh, kw), self.strides, self.padding, self.dilation, self.groups, x.dtype)


@dataclass(frozen=True)
class DepthwiseConv(_ConvBase):
    """A convolution of each channel by itself; x (n, h, w, ci), w (kh, kw, ci, mult), y (n, oh, ow, ci * mult)."""

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        n, h, width, ci = x.shape
        kh, kw, inputs, mult = w.shape
        if inputs != ci or mult is None:
            raise _no_fit(self, f"(kh, kw, {ci}, multiplier) for x of shape {x.shape}", w.shape)
        return ConvProblem(n or 1, h, width, ci, ci * mult, (kh, kw), self.strides, self.padding, self.dilation, ci, x.dtype)

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        if not w.flags.c_contiguous:
            raise ValueError(f"{self.name}: w: expected an array in C order, got strides {w.strides} for shape {w.shape}")
        return w.reshape(p.w_shape)


@dataclass(frozen=True)
class ConvTranspose(_ConvBase):
    """The adjoint of a convolution from y to x, Keras's Conv2DTranspose; x (n, h, w, ci), w (kh, kw, filters, ci).

    padding "valid": y has (h - 1) * stride + max(kernel, stride) + output_padding pixels, the middle term being the
    kernel alone where output_padding is given.  "same": h * stride, or (h - 1) * stride + kernel % 2 + output_padding.
    kernel counts its dilation.  Explicit padding is that of the convolution from y to x.
    """

    output_padding: tuple[int, int] | None = None

    accumulates: ClassVar[tuple[int, ...]] = ()
    passes: ClassVar[tuple[str, str, str]] = ("backward_data", "forward", "backward_weights")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_padding is not None:
            object.__setattr__(self, "output_padding", pair(self.output_padding, "output_padding", 0))

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        n, h, width, ci = x.shape
        kh, kw, filters, inputs = w.shape
        if inputs != ci:
            raise _no_fit(self, f"(kh, kw, filters, {ci}) for x of shape {x.shape}", w.shape)
        if h is None or width is None or kh is None or kw is None:
            raise ValueError(f"{self.name}: x: expected known sizes but for the batch, got shape {x.shape}")
        crops = [self._crop(axis, kernel) for axis, kernel in enumerate((kh, kw))]
        extents = [(extent - 1) * stride + (kernel - 1) * dilation + 1 - left - right
                   for extent, stride, kernel, dilation, (left, right)
                   in zip((h, width), self.strides, (kh, kw), self.dilation, crops, strict=True)]
        sides = tuple((left, max(right, 0)) for left, right in crops)
        p = ConvProblem(n or 1, *extents, filters, ci, (kh, kw), self.strides, sides, self.dilation, 1, x.dtype)
        if (p.oh, p.ow) != (h, width):
            raise ValueError(f"{self.name}: output_padding: expected less than the strides {self.strides}, got "
                             f"{self.output_padding}")
        return p

    def _crop(self, axis: int, kernel: int) -> tuple[int, int]:
        """Pixels that are cut off before and after (h - 1) * stride + kernel; fewer than none are added."""
        stride, reach = self.strides[axis], (kernel - 1) * self.dilation[axis] + 1
        extra = None if self.output_padding is None else self.output_padding[axis]
        if self.padding == "valid":
            return 0, -(max(reach, stride) - reach if extra is None else extra)
        if self.padding == "same":
            total = stride + reach - 2 if extra is None else reach + reach % 2 - 2 + extra
            left = min(total // 2 + total % 2, reach - 1)
            return reach - 1 - left, reach - 1 - (total - left)
        before, after = self.padding[axis]
        return before, after - (extra or 0)

    def _output_shape(self, p: ConvProblem) -> tuple[int, int, int, int]:
        return p.x_shape

    def forward(self, p: Pass) -> Call:
        problem = self._problem_of(p.x[0], p.x[1])
        name = self._algorithm(problem, "backward_data")
        y, bias = p.y[0], p.x[2] if len(p.x) > 2 else None
        calls: list[Callable[..., int]] = [bind(problem, "backward_data", name, y, p.x[1], p.x[0])]
        code, alpha, ldy = ACTIVATIONS[self.activation], self.alpha, pixel_stride(y, "y")
        if code or bias is not None:
            calls.append(lambda workspace: ext.bias_forward(y, ldy, bias, code, alpha))
        return in_order(calls, p.workspace, workspace_bytes(problem, "backward_data", name))

    def backward(self, p: Pass) -> Call:
        dy, dx, dw = p.dy[0], p.dx[0], p.dx[1]
        calls, need = self._finish_backward(p, dy)
        if dw is not None:
            problem = self._problem_of(p.x[0], dw)
            name = self._algorithm(problem, "backward_weights")
            calls.append(bind(problem, "backward_weights", name, dy, dw, p.x[0]))
            need = max(need, workspace_bytes(problem, "backward_weights", name))
        if dx is not None:
            problem = self._problem_of(dx, p.x[1])
            name = self._algorithm(problem, "forward")
            calls.append(bind(problem, "forward", name, dy, p.x[1], dx))
            need = max(need, workspace_bytes(problem, "forward", name))
        return in_order(calls, p.workspace, need)


def _channels_last(function: Callable[[Any], Any], x: Any, data_format: str | None) -> Any:
    """function on NHWC, for inputs of either format; None is the format set in config."""
    data_format = data_format or config.image_data_format()
    if data_format == "channels_last":
        return function(x)
    if data_format != "channels_first":
        raise ValueError(f"data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
    from pydtconv.ops import transpose

    return transpose(function(transpose(x, (0, 2, 3, 1))), (0, 3, 1, 2))


def conv(inputs: Any, kernel: Any, strides: Any = 1, padding: Any = "valid", data_format: str | None = None,
         dilation_rate: Any = 1) -> Any:
    """Two-dimensional convolution; the groups follow from the channels of inputs and kernel."""

    def apply(x: Any) -> Any:
        channels, inner = x.shape[-1], kernel.shape[2]
        if channels % inner:
            raise ValueError(f"kernel: expected a divisor of {channels} input channels as third dimension, got {kernel.shape}")
        return Conv(strides, padding, dilation_rate, groups=channels // inner)(x, kernel)

    return _channels_last(apply, inputs, data_format)


def depthwise_conv(inputs: Any, kernel: Any, strides: Any = 1, padding: Any = "valid", data_format: str | None = None,
                   dilation_rate: Any = 1) -> Any:
    """Convolution of each channel by itself; kernel (kh, kw, channels, multiplier)."""
    return _channels_last(lambda x: DepthwiseConv(strides, padding, dilation_rate)(x, kernel), inputs, data_format)


def conv_transpose(inputs: Any, kernel: Any, strides: Any = 1, padding: Any = "valid", output_padding: Any = None,
                   data_format: str | None = None, dilation_rate: Any = 1) -> Any:
    """Transposed convolution; kernel (kh, kw, filters, channels)."""
    op = ConvTranspose(strides, padding, dilation_rate, output_padding=output_padding)
    return _channels_last(lambda x: op(x, kernel), inputs, data_format)
