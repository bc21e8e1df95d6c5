"""Random changes of images: a generator for each image draws, and C changes them (cext/image/changes.c)."""

from __future__ import annotations

import numpy as np

from pydtconv.images import steps
from pydtconv.kernels.base import OUTSIDE_OF_TRAINING, Call, Kernel, Pass, nothing
from pydtconv.kernels.registry import ANY, register
from pydtconv.ops.augment import CHANGES, TRANSFORMS, Augment, Further, Generators, generators, nothing_drawn
from pydtconv.ops.base import Spec


@register(Augment, dtypes=ANY)
class AugmentKernel(Kernel[Augment]):
    """The generators are keyed by seed, node, step and image."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "backward" or not self.op.by_steps:
            return 0
        return steps.workspace([extent or 1 for extent in inputs[0].shape], inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        x, y, run, op = p.x[0], p.y[0], p.run, self.op
        parts = [Further(op.kind, op.settings, op.seed, p.stream), *op.then]

        def rngs_of(part: Further) -> Generators:
            step, stream = run.step, part.stream & 0xFFFFFFFF
            if not p.training:
                step, stream = run.draws, stream ^ OUTSIDE_OF_TRAINING
            return generators(run.seed if part.seed is None else part.seed, len(x), run.first_row(len(x)), step, stream)

        def steps_of(part: Further) -> steps.Steps:
            change, settings = CHANGES[part.kind], dict(part.settings)
            assert change.steps is not None
            drawn = {} if change.draw is nothing_drawn else change.draw(x.shape, rngs_of(part), **settings)
            return change.steps(x.shape, drawn, **settings)

        def draw() -> None:
            run.draws += not p.training
            if op.by_steps:
                found = steps.in_turn([steps_of(part) for part in parts])
                steps.change(x, steps.joined(found) if op.then else found, y, p.workspace)
            else:
                np.copyto(y, TRANSFORMS[op.kind](x, rngs_of(parts[0]), **dict(op.settings)), casting="unsafe")

        return draw

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        raise NotImplementedError(f"{self.op.kind}: has no gradient here, and one is wanted: put it before the weights")
