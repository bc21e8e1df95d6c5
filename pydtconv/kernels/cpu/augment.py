"""Random changes of images: a generator for each image draws, and C changes them (cext/image/changes.c)."""

from __future__ import annotations

import numpy as np

from pydtconv.images import steps
from pydtconv.images.step_gradients import gradient
from pydtconv.kernels.base import OUTSIDE_OF_TRAINING, Call, Kernel, Pass, nothing
from pydtconv.kernels.registry import ANY, register
from pydtconv.ops.augment import CHANGES, TRANSFORMS, Augment, Further, Generators, generators, nothing_drawn
from pydtconv.ops.base import Spec


@register(Augment, dtypes=ANY)
class AugmentKernel(Kernel[Augment]):
    """The generators are keyed by seed, node, step and image."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "backward" or not self.op.by_steps:  # backward allocates what it needs
            return 0
        return steps.workspace([extent or 1 for extent in inputs[0].shape], inputs[0].dtype)

    def _rngs_of(self, part: Further, p: Pass) -> Generators:
        run, count = p.run, len(p.x[0])
        step, stream = run.step, part.stream & 0xFFFFFFFF
        if not p.training:
            step, stream = run.draws, stream ^ OUTSIDE_OF_TRAINING
        return generators(run.seed if part.seed is None else part.seed, count, run.first_row(count), step, stream)

    def _steps(self, p: Pass) -> steps.Steps:
        found, shape = [], p.x[0].shape
        for part in (self._first(p), *self.op.then):
            change, settings = CHANGES[part.kind], dict(part.settings)
            assert change.steps is not None
            drawn = {} if change.draw is nothing_drawn else change.draw(shape, self._rngs_of(part, p), **settings)
            found.append(change.steps(shape, drawn, **settings))
        return steps.in_turn(found)

    def _first(self, p: Pass) -> Further:
        return Further(self.op.kind, self.op.settings, self.op.seed, p.stream)

    def forward(self, p: Pass) -> Call:
        x, y, op = p.x[0], p.y[0], self.op

        def draw() -> None:
            p.run.draws += not p.training
            if op.by_steps:
                found = self._steps(p)
                steps.change(x, steps.joined(found) if op.then else found, y, p.workspace)
            else:
                rngs = self._rngs_of(self._first(p), p)
                np.copyto(y, TRANSFORMS[op.kind](x, rngs, **dict(op.settings)), casting="unsafe")

        return draw

    def backward(self, p: Pass) -> Call:
        """By what forward has drawn, which is drawn once more: operators that are differentiated are not joined."""
        x, dy, dx, op = p.x[0], p.dy[0], p.dx[0], self.op

        def add() -> None:
            if op.by_steps:
                found = gradient(x, self._steps(p), dy)
            else:
                found = TRANSFORMS[op.kind](x, self._rngs_of(self._first(p), p), dy=dy, **dict(op.settings))
            np.add(dx if p.adds(0) else 0, found, out=dx, casting="unsafe")

        return nothing if dx is None else add
