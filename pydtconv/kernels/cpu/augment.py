"""Random changes of images, by NumPy, with a generator for each image."""

from __future__ import annotations

import numpy as np

from pydtconv.kernels.base import OUTSIDE_OF_TRAINING, Call, Kernel, Pass, nothing
from pydtconv.kernels.registry import ANY, register
from pydtconv.ops.augment import TRANSFORMS, Augment, generators


@register(Augment, dtypes=ANY)
class AugmentKernel(Kernel[Augment]):
    """The generators are keyed by seed, node, step and image."""

    def forward(self, p: Pass) -> Call:
        x, y, run, settings = p.x[0], p.y[0], p.run, dict(self.op.settings)

        def draw() -> None:
            seed = run.seed if self.op.seed is None else self.op.seed
            step, stream = run.step, p.stream & 0xFFFFFFFF
            if not p.training:
                run.draws += 1
                step, stream = run.draws, stream ^ OUTSIDE_OF_TRAINING
            rngs = generators(seed, len(x), run.first_row(len(x)), step, stream)
            np.copyto(y, TRANSFORMS[self.op.kind](x, rngs, **settings), casting="unsafe")

        return draw

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        raise NotImplementedError(f"{self.op.kind}: has no gradient here, and one is wanted: put it before the weights")
