"""Convolutions that get halos as vectors: they are linear, so that zeros stand for what is beyond the own part.

y          = conv(own part in zeros, w), then the rims once more, of all that they read
d halo     = what the rims' dy give to it
dx of part = what dy gives to it in the convolution with zeros
dw         = that of the part in zeros, and that of the rims with zeros in the part's place
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pydtconv.kernels.base import Call, Kernel, Pass, sequence
from pydtconv.kernels.cpu.in_order import in_order
from pydtconv.kernels.cpu.moments import moments_in, statistics, statistics_workspace
from pydtconv.kernels.cpu.rims import Part, RimPasses, aligned, carved, copied, size, spec_like
from pydtconv.kernels.cpu.rows import spec_of
from pydtconv.kernels.cpu.shape import bind_fill
from pydtconv.kernels.cpu.strided import bind_copy
from pydtconv.ops.base import Spec
from pydtconv.ops.halo import Rim


class ConvRims(RimPasses[Any]):
    """Inputs are x, w, perhaps a bias and a residual, and the halo."""

    def __init__(self, kernel: Kernel[Any]) -> None:
        super().__init__(kernel)
        self.inner = self.kernel_of(_without(self.op, "halo", "moments"))

    def of_rim(self, rim: Rim) -> Any:
        return dataclasses.replace(_without(super().of_rim(rim), "halo", "moments"), variant=self.op.variant)

    def _output(self, *inputs: Spec) -> Spec:
        y = self.op.infer(*inputs)
        return y[0] if isinstance(y, tuple) else y

    def saves(self, *inputs: Spec) -> dict[str, Spec]:
        """Rims of the residual, whose place y may take."""
        if not self.op.residual:
            return {}
        every = self.parts(self._output(*inputs), inputs[1])
        return {"rims": Spec((sum(size(part.y) for part in every),), "uint8")}

    def problems(self, *inputs: Spec) -> list[tuple[Any, dict[str, str]]]:
        return [
            (part.kernel.op.problem(part.x, inputs[1]), part.kernel.algorithms_for(part.x, inputs[1]))
            for part in self.parts(self._output(*inputs), inputs[1])
        ]

    def workspace(self, direction: str, *inputs: Spec) -> int:
        own = inputs[:-1]
        y = self._output(*inputs)
        need = [aligned(self.inner.workspace(direction, *own))]
        for part in self.parts(y, inputs[1]):
            small = part.kernel.workspace(direction, part.x, *own[1:])
            filters = size(inputs[1]) if direction == "backward" else 0
            need.append(aligned(small) + size(part.x) + size(part.y) + filters)
        if direction == "backward":
            return max(need)
        if self.op.auxiliary:
            need.append(aligned(statistics_workspace(y)))
        return max(need) + sum(size(spec) for spec in self.saves(*inputs).values())

    def _carved(self, p: Pass, part: Part[Any], need: int, *more: Spec) -> tuple[np.ndarray, list[np.ndarray]]:
        """The workspace of a rim's kernel, and its images with what else is wanted."""
        assert p.workspace is not None
        return p.workspace[:need], carved(p.workspace[aligned(need) :], part.x, part.y, *more)[:-1]

    # -- forward -----------------------------------------------------------------------------------------------------

    def _residuals(self, p: Pass, parts: Sequence[Part[Any]]) -> list[np.ndarray]:
        """An image for each rim, in what `saves` asks for, else at the end of the workspace."""
        if not self.op.residual:
            return []
        memory = p.saved.get("rims")
        if memory is None:
            assert p.workspace is not None
            memory = p.workspace[p.workspace.size // 64 * 64 - sum(size(part.y) for part in parts) :]
        return carved(memory, *(part.y for part in parts))[:-1]

    def forward_inner(self, p: Pass) -> Call:
        parts = self.parts(spec_like(p.y[0], self.halo.image), spec_of(p.x[1]))
        kept = self._residuals(p, parts)
        calls = [copied(part.of(self.op.residual_of(p.x)), image) for part, image in zip(parts, kept, strict=False)]
        saved = {key: value for key, value in p.saved.items() if key != "rims"}
        calls.append(self.inner.forward(dataclasses.replace(p, x=p.x[:-1], y=p.y[:1], saved=saved)))
        return sequence(calls)

    def forward_rims(self, p: Pass) -> Call:
        """Moments are those of all of y."""
        parts = self.parts(spec_like(p.y[0], self.halo.image), spec_of(p.x[1]))
        residuals = self._residuals(p, parts)
        others = [spec_of(array) for array in p.x[1:-1]]
        calls: list[Call] = []
        for number, part in enumerate(parts):
            workspace, (image, result) = self._carved(p, part, part.kernel.workspace("forward", part.x, *others))
            x = [image, *p.x[1:-1]]
            if residuals:
                x[-1] = result = residuals[number]
            calls += self.gathered(part.rim, p.x[0], p.x[-1], image)
            calls.append(part.kernel.forward(self.small(p, workspace, x=x, y=[result])))
            calls.append(copied(result, part.of(p.y[0])))
        if len(p.y) > 1:
            gather: Any = statistics(p.y[0], *moments_in(p.y[1]))
            calls.append(partial(gather, p.workspace))
        return sequence(calls)

    # -- backward ----------------------------------------------------------------------------------------------------

    def _bare(self, part: Part[Any]) -> Any:
        """What computes a rim's gradients, from dy as it is behind the activation's slope."""
        return self.kernel_of(_without(part.kernel.op, "activation", "residual"))

    def backward_rims(self, p: Pass) -> Call:
        """Also turns dy into that of the bare convolution, and writes the bias's gradient."""
        finish, need = self.kernel._finish_backward(p, p.dy[0])
        calls = [in_order(finish, p, need)] if finish else []
        vector, w = p.dx[-1], p.x[1]
        if vector is None:
            return sequence(calls)
        calls.append(bind_fill(vector, 0))
        for part in self.parts(spec_like(p.dy[0], self.halo.image), spec_of(w)):
            bare = self._bare(part)
            workspace, (image, result) = self._carved(p, part, bare.workspace("backward", part.x, spec_of(w)))
            calls.append(copied(part.of(p.dy[0]), result))
            calls.append(bare.backward(self.small(p, workspace, x=[None, w], dy=[result], dx=[image, None])))
            calls += self.given_back(part.rim, image, vector)
        return sequence(calls)

    def backward_inner(self, p: Pass) -> Call:
        dx, dw = p.dx[:2]
        calls: list[Call] = []
        if dx is not None or dw is not None:
            bare = self.kernel_of(_without(self.inner.op, "activation", "residual"))
            calls.append(bare.backward(dataclasses.replace(p, x=p.x[:2], dx=p.dx[:2])))
        if dw is None:
            return sequence(calls)
        for part in self.parts(spec_like(p.dy[0], self.halo.image), spec_of(dw)):
            bare = self._bare(part)
            need = bare.workspace("backward", part.x, spec_of(dw))
            workspace, (image, result, more) = self._carved(p, part, need, spec_of(dw))
            calls += self.gathered(part.rim, None, p.x[-1], image)
            calls.append(copied(part.of(p.dy[0]), result))
            calls.append(bare.backward(self.small(p, workspace, x=[image, None], dy=[result], dx=[None, more])))
            calls.append(bind_copy(more, dw, accumulate=True))
        return sequence(calls)


def _without(op: Any, *names: str) -> Any:
    """The operator with these attributes, of those that it has, as they are by default."""
    fields = {field.name: field.default for field in dataclasses.fields(op)}
    return dataclasses.replace(op, **{name: fields[name] for name in names if name in fields})
