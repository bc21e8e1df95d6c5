"""LAMB (You et al., ICLR 2020): Adam's direction, scaled for each variable by the ratio of norms.

m, v as in Adam;  u = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon)
w = w - lr * |w| / |u| * u, with a ratio of 1 where one of the norms is 0
"""

from __future__ import annotations

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.optimizers.moments import AdaptiveMoments


class Lamb(AdaptiveMoments):
    """Layer-wise adaptive moments, for large batches."""

    def update_step(self, gradient: np.ndarray, variable: Variable, learning_rate: float) -> None:
        """One variable's update, in place."""
        slots, step = self._pydt_slots.of(variable), int(self.iterations) + 1
        m, v, w = slots["momentum"].array, slots["velocity"].array, variable.array
        m += (gradient - m) * (1 - self.beta_1)
        v += (np.square(gradient) - v) * (1 - self.beta_2)
        update = m / (1 - self.beta_1**step)
        update /= np.sqrt(v / (1 - self.beta_2**step)) + self.epsilon
        of_w, of_update = (float(np.sqrt(np.sum(np.square(x), dtype=np.float64))) for x in (w, update))
        ratio = of_w / of_update if of_w > 0 and of_update > 0 else 1.0
        w -= ratio * learning_rate * update
