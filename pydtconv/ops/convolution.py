"""Convolution operators: Conv and DepthwiseConv, and what they share with ConvTranspose.

Images are NHWC.  Each pass runs the algorithm of `pydtconv.conv` that the operator names, else that of a variant, else
the first of the ranking; bias and activation are part of the operator, so that they cost no sweep of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from pydtconv._ext import conv as ext
from pydtconv.conv.cost import fewest_multiplications
from pydtconv.conv.functional import ACTIVATIONS, Normalization, bind, pixel_stride, run, scratch
from pydtconv.conv.problem import ConvProblem, pair
from pydtconv.conv.selection import Choice, choose, variant_of, workspace_bytes
from pydtconv.conv.table import TABLE
from pydtconv.ops.base import Call, Cost, Op, Pass, Reading, Retained, Spec, in_parts, spec_of
from pydtconv.ops.moments import moments_in, moments_spec, statistics, statistics_workspace

Algorithm = str | Mapping[str, str] | tuple[tuple[str, str], ...] | None


@dataclass(frozen=True)
class ConvBase(Op):
    """What the operators share: inputs (x, w) or (x, w, b), each pass of the operator being one of a convolution.

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
    replaces_y: ClassVar[tuple[int, ...]] = (0,)  # y tells the activation's slope, which comes first
    takes_bias: ClassVar[bool] = True
    #: the convolution's pass that computes y, dx and dw
    passes: ClassVar[tuple[str, str, str]] = ("forward", "backward_data", "backward_weights")
    #: whether the last input is an image of y's shape that is added to y before the activation
    adds: ClassVar[bool] = False

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
        """The convolution behind this operator, an unknown batch as 1.  Raises ValueError where shapes do not fit."""
        raise NotImplementedError

    def choices(self, x: Spec, w: Spec, *rest: Spec) -> dict[str, Choice]:
        """The algorithm of each direction of the convolution, and why it was taken."""
        p = self.problem(x, w)
        algorithm = dict(self.algorithm) if isinstance(self.algorithm, tuple) else self.algorithm
        return {direction: choose(p, direction, algorithm, self.variant) for direction in self.passes}

    def algorithms_for(self, x: Spec, w: Spec, *rest: Spec) -> dict[str, str]:
        """The algorithm of each direction of the convolution: forward, backward_data, backward_weights."""
        return {direction: choice.algorithm for direction, choice in self.choices(x, w).items()}

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        x, w = self._check(inputs)
        p = self.problem(x, w)
        return Spec((x.shape[0], *self._output_shape(p)[1:]), x.dtype)

    def _output_shape(self, p: ConvProblem) -> tuple[int, int, int, int]:
        return p.y_shape

    def _check(self, inputs: tuple[Spec, ...]) -> tuple[Spec, Spec]:
        if len(inputs) - self.adds not in (2, 3):
            last = " and a residual" if self.adds else ""
            raise ValueError(f"{self.name}: expected inputs x, w and perhaps b{last}, got {len(inputs)} inputs")
        x, w = inputs[:2]
        for spec, what in ((x, "x"), (w, "w")):
            if spec.dtype != x.dtype or spec.dtype not in ("float32", "float64"):
                raise ValueError(f"{self.name}: {what}: expected float32 or float64 as x has, got {spec.dtype}")
        shape = (x.shape[0], *self._output_shape(self.problem(x, w))[1:])
        wanted = {"b": (self._bias(inputs), shape[3:]), "residual": (inputs[-1] if self.adds else None, shape)}
        for name, (given, expected) in wanted.items():
            if given is not None and given != Spec(expected, x.dtype):
                raise ValueError(
                    f"{self.name}: {name}: expected shape {expected} of {x.dtype}, got {given.shape} of {given.dtype}"
                )
        return x, w

    def _bias(self, inputs: Sequence[Any]) -> Any:
        """The one of the inputs, or of what belongs to them, that is the bias's; None where there is none."""
        return inputs[2] if len(inputs) - self.adds > 2 else None

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        x = tuple(i for i, other in ((0, 1), (1, 0)) if needs[other])
        return Retained(x=x, y=(0,) if self.overwrites_dy else ())

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        p = self.problem(x, w)
        names = self.algorithms_for(x, w)
        directions = self.passes[:1] if direction == "forward" else self.passes[1:]
        need = max(workspace_bytes(p, which, names[which]) for which in directions)
        if direction == "forward" and self.auxiliary and not TABLE[names["forward"]].gathers:
            need = max(need, statistics_workspace(Spec(p.y_shape, p.dtype)))
        bias = self._bias(inputs)
        if direction == "backward" and bias is not None:
            need = max(need, ext.bias_backward_workspace(bias.size, x.dtype == "float64"))
        return need

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        p = self.problem(*inputs[:2])
        roles = ("forward",) if direction == "forward" else ("backward_data", "backward_weights")
        names = self.passes[:1] if direction == "forward" else self.passes[1:]
        return {role: Cost(p.flops, fewest_multiplications(p, name)) for role, name in zip(roles, names, strict=True)}

    # -- passes ----------------------------------------------------------------------------------------------------

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        """w or dw in the convolution's shape, as a view."""
        return w

    def forward(self, p: Pass) -> Call:
        problem = self._problem_of(p.x[0], p.x[1])
        name = self._algorithm(problem, "forward")
        wanted = moments_in(p.y[1]) if len(p.y) > 1 else None
        gathers = wanted is not None and TABLE[name].gathers
        calls: dict[str, Callable[..., int]] = {
            "forward": bind(
                problem,
                "forward",
                name,
                p.x[0],
                self._filters(problem, p.x[1]),
                p.y[0],
                bias=self._bias(p.x),
                activation=self.activation,
                alpha=self.alpha,
                moments=wanted if gathers else None,
                reading=None if p.reading is None else _through(p.reading),
                residual=p.x[-1] if self.adds else None,
            )
        }
        need = workspace_bytes(problem, "forward", name)
        if wanted is not None and not gathers:
            calls["forward_moments"] = statistics(p.y[0], *wanted)
            need = max(need, statistics_workspace(spec_of(p.y[0])))
        return in_order(calls, p, need)

    def backward(self, p: Pass) -> Call:
        dy, dx, dw = p.dy[0], p.dx[0], p.dx[1]
        calls, need = self._finish_backward(p, dy)
        if dw is not None:
            problem = self._problem_of(p.x[0], dw)
            name = self._algorithm(problem, "backward_weights")
            filters = self._filters(problem, dw)
            reading = None if p.reading is None else _through(p.reading)
            calls["backward_weights"] = bind(problem, "backward_weights", name, p.x[0], filters, dy, reading=reading)
            need = max(need, workspace_bytes(problem, "backward_weights", name))
        if dx is not None:
            problem = self._problem_of(dx, p.x[1])
            name = self._algorithm(problem, "backward_data")
            calls["backward_data"] = bind(
                problem,
                "backward_data",
                name,
                dx,
                self._filters(problem, p.x[1]),
                dy,
                accumulate=bool(p.accumulate and p.accumulate[0]),
                slopes=None
                if p.slopes is None
                else (p.slopes.x, _through(p.slopes.reading), *moments_in(p.slopes.sums)),
            )
            need = max(need, workspace_bytes(problem, "backward_data", name))
        return in_order(calls, p, need)

    def _problem_of(self, x: np.ndarray, w: np.ndarray) -> ConvProblem:
        return self.problem(Spec(x.shape, x.dtype.name), Spec(w.shape, w.dtype.name))

    def _algorithm(self, problem: ConvProblem, direction: str) -> str:
        algorithm = dict(self.algorithm) if isinstance(self.algorithm, tuple) else self.algorithm
        return choose(problem, direction, algorithm, self.variant).algorithm

    def _finish_backward(self, p: Pass, dy: np.ndarray) -> tuple[dict[str, Callable[..., int]], int]:
        """What turns dy into that of the bare convolution and writes db, and the workspace it needs."""
        db = self._bias(p.dx)
        code, alpha = ACTIVATIONS[self.activation], self.alpha
        if not code and db is None:
            return {}, 0
        y = p.y[0] if code else None
        ldy, lddy = 0 if y is None else pixel_stride(y, "y"), pixel_stride(dy, "dy")

        def finish(workspace: np.ndarray | None) -> int:
            status: int = ext.bias_backward(dy, lddy, y, ldy, code, alpha, db, workspace)
            return status

        need = 0 if db is None else ext.bias_backward_workspace(db.size, dy.dtype == np.float64)
        return {"backward_bias": finish}, need


def _through(reading: Reading) -> Normalization:
    return reading.mean, reading.scale, reading.beta, reading.relu


def in_order(calls: Mapping[str, Callable[..., int]], p: Pass, need: int) -> Call:
    """One call of several parts that share p's workspace; where none was placed, each call has its own."""
    if need == 0 or (p.workspace is not None and p.workspace.size >= need):
        return in_parts({name: partial(run, call, p.workspace) for name, call in calls.items()}, p.run)

    def transient() -> None:
        mine = scratch(need)
        in_parts({name: partial(run, call, mine) for name, call in calls.items()}, p.run)()

    return transient


def sizes_of(op: Op, spec: Spec, what: str) -> tuple[int, int, int, int]:
    """The four dimensions of an image or of filters; an unknown batch counts as 1.  Raises ValueError for others."""
    if len(spec.shape) != 4 or None in spec.shape[what == "x" :]:
        raise ValueError(
            f"{op.name}: {what}: expected four dimensions, known but for the batch, got shape {spec.shape}"
        )
    first, second, third, fourth = (extent or 0 for extent in spec.shape)
    return first if spec.shape[0] is not None else 1, second, third, fourth


def no_fit(op: Op, expected: str, got: object) -> ValueError:
    return ValueError(f"{op.name}: w: expected {expected}, got {got}")


@dataclass(frozen=True)
class Conv(ConvBase):
    """y = act(conv(x, w) + b + r); x (n, h, w, ci), w (kh, kw, ci // groups, co), b (co,).

    residual: the last input is r, an image of y's shape, whose place y may take; without it there is no r.
    moments: also mean and biased variance of y over all pixels, as an output (2, 1, 1, co) that is not differentiated.
    Where the algorithm can, they are gathered from each block of y while it is in cache.
    """

    groups: int = 1
    residual: bool = False
    moments: bool = False

    @property
    def name(self) -> str:
        return "conv+add" if self.residual else "conv"

    @property
    def adds(self) -> bool:  # type: ignore[override]
        return self.residual

    @property
    def inplace(self) -> tuple[int, ...]:  # type: ignore[override]
        return (2, 3) if self.residual else ()  # of these, what has y's shape: b never has

    @property
    def passes_dy(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.inplace

    @property
    def auxiliary(self) -> int:  # type: ignore[override]
        return int(self.moments)

    def normalizes_input(self, *inputs: Spec) -> bool:
        p, names = self.problem(*inputs[:2]), self.algorithms_for(*inputs)
        return all(TABLE[names[role]].normalizes_in(p) for role in ("forward", "backward_weights"))

    def gathers_slopes(self, *inputs: Spec) -> bool:
        return TABLE[self.algorithms_for(*inputs)["backward_data"]].gathers

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        y = super().infer(*inputs)
        assert isinstance(y, Spec)
        return (y, moments_spec(y)) if self.moments else y

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        n, h, width, ci = sizes_of(self, x, "x")
        kh, kw, inputs, co = sizes_of(self, w, "w")
        if inputs * self.groups != ci:
            raise no_fit(self, f"(kh, kw, {ci} / {self.groups} groups, filters) for x of shape {x.shape}", w.shape)
        return ConvProblem(
            n, h, width, ci, co, (kh, kw), self.strides, self.padding, self.dilation, self.groups, x.dtype
        )


@dataclass(frozen=True)
class DepthwiseConv(ConvBase):
    """A convolution of each channel by itself; x (n, h, w, ci), w (kh, kw, ci, mult), y (n, oh, ow, ci * mult)."""

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        n, h, width, ci = sizes_of(self, x, "x")
        kh, kw, inputs, mult = sizes_of(self, w, "w")
        if inputs != ci:
            raise no_fit(self, f"(kh, kw, {ci}, multiplier) for x of shape {x.shape}", w.shape)
        return ConvProblem(n, h, width, ci, ci * mult, (kh, kw), self.strides, self.padding, self.dilation, ci, x.dtype)

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        if not w.flags.c_contiguous:
            raise ValueError(
                f"{self.name}: w: expected an array in C order, got strides {w.strides} for shape {w.shape}"
            )
        return w.reshape(p.w_shape)
