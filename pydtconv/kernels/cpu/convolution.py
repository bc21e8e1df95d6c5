"""Convolutions: each pass by an algorithm of `pydtconv.conv`, bias and activation in the same pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from pydtconv import config
from pydtconv._ext import conv as ext
from pydtconv._ext import norm
from pydtconv.conv.activations import FUSED
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.arrays import as_planes, pixel_stride
from pydtconv.conv.bound_passes import Normalization, bind
from pydtconv.conv.kept_transforms import kept, kept_besides
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import (
    Choice,
    algorithms,
    choose,
    nearly_as_fast,
    seconds_to_read,
    variant_of,
    workspace_bytes,
)
from pydtconv.kernels.base import AlgorithmKernel, Call, Keepable, Pass, Prologue, RowBlock, RunState, nothing, sequence
from pydtconv.kernels.cpu.convolution_rims import ConvRims
from pydtconv.kernels.cpu.in_order import in_order
from pydtconv.kernels.cpu.moments import combined, moments_in, statistics, statistics_workspace
from pydtconv.kernels.cpu.rows import spec_of
from pydtconv.kernels.cpu.strided import bind_copy
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.convolution import Conv, ConvBase, DepthwiseConv, MeasuredConv

ConvType = TypeVar("ConvType", bound=ConvBase)


class ConvBaseKernel(AlgorithmKernel[ConvType]):
    """What the convolutions share; the arrays are those of the convolution behind the operator (`ConvBase.problem`)."""

    @property
    def persistent(self) -> bool:
        return variant_of(self.op.variant).persistent

    def choices(self, x: Spec, w: Spec, *rest: Spec) -> dict[str, Choice]:
        """The algorithm of each direction of the convolution, and why it was taken."""
        p = self.op.problem(x, w)
        return {direction: choose(p, direction, self._asked_for, self.op.variant) for direction in self.op.passes}

    def algorithms_for(self, *inputs: Spec, within: int | None = None) -> dict[str, str]:
        if within is not None and self.op.algorithm is None and self._is_auto:
            p = self.op.problem(*inputs[:2])
            return {direction: _within(p, direction, within) for direction in self.op.passes}
        return {direction: choice.algorithm for direction, choice in self.choices(*inputs[:2]).items()}

    @property
    def _is_auto(self) -> bool:
        return variant_of(self.op.variant).name == "AUTO"

    @property
    def _asked_for(self) -> Mapping[str, str] | str | None:
        """What the operator itself says of algorithms."""
        return dict(self.op.algorithm) if isinstance(self.op.algorithm, tuple) else self.op.algorithm

    @cached_property
    def rims(self) -> ConvRims | None:
        return None if self.op.halo is None else ConvRims(self)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if self.rims is not None:
            return max(self.rims.workspace(direction, *inputs), self._workspace(direction, *inputs))
        return self._workspace(direction, *inputs)

    def _workspace(self, direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        p = self.op.problem(x, w)
        names = self.algorithms_for(x, w)
        directions = self.op.passes[:1] if direction == "forward" else self.op.passes[1:]
        need = max(workspace_bytes(p, which, names[which]) for which in directions)
        if direction == "forward" and self.op.auxiliary and not TABLE[names["forward"]].gathers:
            need = max(need, statistics_workspace(Spec(p.y_shape, p.dtype)))
        bias = self.op.bias_of(inputs)
        if direction == "backward" and bias is not None:
            need = max(need, ext.bias_backward_workspace(bias.size, x.dtype))
        return need

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        """w or dw in the convolution's shape, as a view."""
        return w

    def forward(self, p: Pass) -> Call:
        if self.rims is not None:
            return self.rims.forward(p)
        problem = self._problem_of(p.x[0], p.x[1])
        name = self._algorithm(problem, "forward")
        wanted = moments_in(p.y[1]) if len(p.y) > 1 else None
        gathers = wanted is not None and TABLE[name].gathers
        scale, find_scale = self._scale(p)
        calls: dict[str, Callable[..., int]] = {
            "forward": bind(
                problem,
                "forward",
                name,
                p.x[0],
                self._filters(problem, p.x[1]),
                p.y[0],
                bias=self.op.bias_of(p.x) if scale is None else p.saved["offset"],
                scale=scale,
                activation=self.op.activation,
                alpha=self.op.alpha,
                moments=wanted if gathers else None,
                prologue=None if p.prologue is None else _through(p.prologue),
                residual=self.op.residual_of(p.x),
                spectra=p.saved.get("spectra"),
            )
        }
        need = workspace_bytes(problem, "forward", name)
        if wanted is not None and not gathers:
            calls["forward_moments"] = statistics(p.y[0], *wanted)
            need = max(need, statistics_workspace(spec_of(p.y[0])))
        return sequence([find_scale, in_order(calls, p, need)])

    def _scale(self, p: Pass) -> tuple[tuple[np.ndarray, np.ndarray] | None, Call]:
        """What results are multiplied by and what is added then, and the call that finds the first one and the offset
        before it.
        """
        return None, nothing

    def backward(self, p: Pass) -> Call:
        if self.rims is not None:
            return self.rims.backward(p)
        dy, dx, dw = p.dy[0], p.dx[0], p.dx[1]
        calls, need = self._finish_backward(p, dy)
        if dw is not None:
            calls["backward_weights"], more = self._weights(p)
            need = max(need, more)
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
                accumulate=p.adds(0),
                reductions=None
                if p.reductions is None
                else (p.reductions.x, _through(p.reductions.prologue), *moments_in(p.reductions.sums)),
                bypass=p.reductions is not None and p.reductions.bypass,
                dy_spectra=self._dy_spectra(p),
            )
            need = max(need, workspace_bytes(problem, "backward_data", name))
        return in_order(calls, p, need)

    def _dy_spectra(self, p: Pass) -> np.ndarray | None:
        """What backward_weights leaves for backward_data, where p has both."""
        return None if p.dx[0] is None or p.dx[1] is None else p.saved.get("dy_spectra")

    def _weights(self, p: Pass) -> tuple[Callable[..., int], int]:
        """What writes dw, and the workspace it needs."""
        problem = self._problem_of(p.x[0], p.dx[1])
        name = self._algorithm(problem, "backward_weights")
        call = bind(
            problem,
            "backward_weights",
            name,
            p.x[0],
            self._filters(problem, p.dx[1]),
            p.dy[0],
            prologue=None if p.prologue is None else _through(p.prologue),
            spectra=p.saved.get("spectra"),
            dy_spectra=self._dy_spectra(p),
        )
        return call, workspace_bytes(problem, "backward_weights", name)

    # -- parts of passes ---------------------------------------------------------------------------------------------

    @property
    def works_in_blocks(self) -> bool:
        return isinstance(self.op.padding, tuple) and self.op.halo is None

    @property
    def splits_backward(self) -> bool:
        return self.op.halo is None

    def backward_weights(self, p: Pass) -> Call:
        call, need = self._weights(p)
        return in_order({"backward_weights": call}, p, need)

    def _of_block(self, block: RowBlock) -> ConvBaseKernel[ConvType]:
        return type(self)(dataclasses.replace(self.op, padding=(block.padding, *self.op.padding[1:])))

    def block_workspace(self, block: RowBlock, *inputs: Spec) -> int:
        return self._of_block(block).workspace("forward", _read_by(block, inputs[0]), *inputs[1:])

    def block_problem(self, block: RowBlock, *inputs: Spec) -> ConvProblem:
        """The convolution of one block."""
        return self._of_block(block).op.problem(_read_by(block, inputs[0]), inputs[1])

    def block_saves(self, count: int, *inputs: Spec) -> Spec | None:
        if not self.op.auxiliary:
            return None
        _, moments = self.op.infer(*inputs)  # type: ignore[misc]
        return Spec((count, *moments.shape), moments.dtype)

    def forward_blocks(self, p: Pass, blocks: Sequence[RowBlock], every: Sequence[RowBlock] = ()) -> Call:
        """Moments are those of each block, and at the end of all of them together."""
        found = p.saved.get("blocks")
        calls = []
        for block in blocks:
            here, rows = slice(block.image, block.image + 1), slice(*block.out)
            y = [p.y[0][here, rows], *(() if found is None else (found[block.number],))]
            x = [p.x[0][here, slice(*block.read)], *p.x[1:]]
            if self.op.residual:
                x[-1] = x[-1][here, rows]
            part = dataclasses.replace(p, x=x, y=y, saved={}, run=RunState())  # its parts are not told one by one
            calls.append(self._of_block(block).forward(part))
        if every and found is not None:
            counts = {block.number: block.out[1] - block.out[0] for block in every}
            calls.append(combined(found, [counts[number] for number in range(len(found))], p.y[1]))
        return sequence(calls)

    def _problem_of(self, x: np.ndarray, w: np.ndarray) -> ConvProblem:
        return self.op.problem(spec_of(x), spec_of(w))

    def _algorithm(self, problem: ConvProblem, direction: str) -> str:
        return choose(problem, direction, self._asked_for, self.op.variant).algorithm

    def _finish_backward(self, p: Pass, dy: np.ndarray) -> tuple[dict[str, Callable[..., int]], int]:
        """What turns dy into that of the bare convolution and writes db, and the workspace it needs."""
        db = self.op.bias_of(p.dx)
        code, alpha = FUSED[self.op.activation], self.op.alpha
        if not code and db is None:
            return {}, 0
        y = p.y[0] if code else None
        ldy, lddy = 0 if y is None else pixel_stride(y, "y"), pixel_stride(dy, "dy")

        slope, result = as_planes(dy), None if y is None else as_planes(y)

        def finish(workspace: np.ndarray | None) -> int:
            status: int = ext.bias_backward(slope, lddy, result, ldy, code, alpha, db, workspace)
            return status

        need = 0 if db is None else ext.bias_backward_workspace(db.size, spec_of(dy).dtype)
        return {"backward_bias": finish}, need


def _within(p: ConvProblem, direction: str, most: int) -> str:
    """The fastest algorithm with a workspace of at most so many bytes, else one with the smallest."""
    needs = {name: workspace_bytes(p, direction, name) for name in algorithms(p, direction)}
    bound = max(most, min(needs.values()))
    return next(name for name, need in needs.items() if need <= bound)


def _read_by(block: RowBlock, x: Spec) -> Spec:
    """The part of the input that a block reads."""
    return Spec((1, block.read[1] - block.read[0], *x.shape[2:]), x.dtype)


def _through(prologue: Prologue) -> Normalization:
    return prologue.mean, prologue.scale, prologue.beta, prologue.activation


#: the passes that read x
READERS = ("forward", "backward_weights")
MeasuredType = TypeVar("MeasuredType", bound=MeasuredConv)


class MeasuredConvKernel(ConvBaseKernel[MeasuredType]):
    """Where the algorithms can, x is normalized as it is read, and sums are gathered as dx is written."""

    def _scale(self, p: Pass) -> tuple[tuple[np.ndarray, np.ndarray] | None, Call]:
        how, bias = self.op.normalization, self.op.bias_of(p.x)
        if how is None:
            return None, nothing
        parameters = [None, *self.op.coefficients_of(p.x)]  # as if x were there
        mean, variance = (parameters[i] for i in how.state)
        inverse, scale, offset = (p.saved[name] for name in ("inverse", "scale", "offset"))
        beta = how.beta_of(parameters)
        calls = [norm.bind_coefficients(variance, parameters[1] if how.scale else None, how.epsilon, inverse, scale)]
        calls.append(bind_copy(mean, offset, -1.0))
        if bias is not None:
            calls.append(bind_copy(bias, offset, accumulate=True))
        return (scale, np.zeros_like(scale) if beta is None else beta), sequence(calls)

    def takes_prologue(self, activation: str | None, backward: bool, *inputs: Spec) -> bool:
        if self.op.halo is not None:
            return False  # what is sent lies in memory
        p, names = self.op.problem(*inputs[:2]), self.algorithms_for(*inputs)
        return all(TABLE[names[role]].normalizes_in(p, activation) for role in READERS[: 1 + backward])

    @property
    def _may_change(self) -> bool:
        """Whether other algorithms may be taken for the sake of a normalization; what is sent lies in memory."""
        is_open = self._is_auto and self.op.algorithm in (None, "auto") and config.conv_precision() != "strict"
        return is_open and self.op.halo is None

    def that_normalize(
        self, names: dict[str, str], activation: str | None, backward: bool, *inputs: Spec
    ) -> dict[str, str]:
        if not self._may_change:
            return names
        p, found = self.op.problem(*inputs[:2]), dict(names)
        saves = 0.0 if backward else seconds_to_read(p, 2)  # the image is neither read nor written before
        for role in READERS[: 1 + backward]:
            if not TABLE[names[role]].normalizes_in(p, activation):
                other = nearly_as_fast(p, role, names[role], lambda row: row.normalizes_in(p, activation), saves)
                if other is None:
                    return names
                found[role] = other
        return found

    def that_gather(self, names: dict[str, str], *inputs: Spec) -> dict[str, str]:
        p, role = self.op.problem(*inputs[:2]), "backward_data"
        if not self._may_change or TABLE[names[role]].gathers_reductions(p):
            return names
        saves = seconds_to_read(p, 2)  # the gradient, and what was normalized
        other = nearly_as_fast(p, role, names[role], lambda row: row.gathers_reductions(p), saves)
        return names if other is None else {**names, role: other}

    def gathers_reductions(self, *inputs: Spec) -> bool:
        if self.op.halo is not None:
            return False  # gradients that come from others are missing
        row = TABLE[self.algorithms_for(*inputs)["backward_data"]]
        return row.gathers_reductions(self.op.problem(*inputs[:2]))

    def bypasses_normalization(self, *inputs: Spec) -> bool:
        row = TABLE[self.algorithms_for(*inputs)["backward_data"]]
        return self.gathers_reductions(*inputs) and row.bypasses_in(self.op.problem(*inputs[:2]))


@register(Conv, dtypes=IMAGES)
class ConvKernel(MeasuredConvKernel[Conv]):
    """Convolutions of all channels, or of groups of them."""

    def keeps(self, is_open: Collection[str], *inputs: Spec) -> list[Keepable]:
        """The transform of x, then that of dy, with the basis that the first one has given to backward_weights."""
        p, names = self.op.problem(*inputs[:2]), self.algorithms_for(*inputs)
        opened = set(is_open) if self._is_auto else set()
        keepable: list[Keepable] = []
        of_x = kept(p, names, {"forward", "backward_weights"} <= opened)
        if of_x is not None:
            changed = {"forward": of_x.other, "backward_weights": of_x.backward_weights}
            keepable.append(Keepable("spectra", Spec((of_x.elements,), p.real), of_x.seconds, changed))
            of_dy = kept_besides(p, names | changed, "backward_data" in opened)
        else:
            of_dy = kept(p, names, {"backward_data", "backward_weights"} <= opened, "backward_data")
        if of_dy is not None:
            changed = {"backward_data": of_dy.other, "backward_weights": of_dy.backward_weights}
            keepable.append(Keepable("dy_spectra", Spec((of_dy.elements,), p.real), of_dy.seconds, changed, True))
        return keepable


@register(DepthwiseConv, dtypes=IMAGES)
class DepthwiseConvKernel(MeasuredConvKernel[DepthwiseConv]):
    """Filters are a view in the shape of a grouped convolution's."""

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        if not w.flags.c_contiguous:
            raise ValueError(
                f"{self.op.name}: w: expected an array in C order, got strides {w.strides} for shape {w.shape}"
            )
        return w.reshape(p.w_shape)
