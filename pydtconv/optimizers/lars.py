"""LARS (You, Gitman and Ginsburg, arXiv 1708.03888, 2017): momentum whose rate follows the norms of each variable.

rate = lr * trust_coefficient * |w| / (|g| + weight_decay |w| + epsilon), or lr where |w| or the divisor is 0
m = momentum m - rate (g + weight_decay w);  w = w + m
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.optimizer import Optimizer


class Lars(Optimizer):
    """Layer-wise adaptive rate scaling, for large batches.

    trust_coefficient: how far a variable may move in a step, as a part of its norm, at a learning rate of 1.
    weight_decay: of the gradient, as in the paper, so that momentum has it, too.  adapt_vectors: False leaves variables
    with one axis, as biases and scales, to momentum alone, without decay.
    """

    slot_names = ("momentum",)
    own_arguments = ("momentum", "trust_coefficient", "epsilon", "adapt_vectors")

    def __init__(
        self,
        learning_rate: Any = 1.0,
        momentum: float = 0.9,
        trust_coefficient: float = 0.001,
        epsilon: float = 0.0,
        adapt_vectors: bool = False,
        **shared: Unpack[Shared],
    ) -> None:
        check_numbers("Lars", momentum=momentum, trust_coefficient=trust_coefficient, epsilon=epsilon)
        if not 0 <= momentum <= 1:
            raise ValueError(f"Lars: expected momentum between 0 and 1, got {momentum!r}")
        if not trust_coefficient > 0:
            raise ValueError(f"Lars: trust_coefficient: expected a number above 0, got {trust_coefficient!r}")
        super().__init__(learning_rate, **shared)
        self.momentum = momentum
        self.trust_coefficient = trust_coefficient
        self.epsilon = epsilon
        self.adapt_vectors = bool(adapt_vectors)

    def update_step(self, gradient: np.ndarray, variable: Variable, learning_rate: float) -> None:
        """One variable's update, in place."""
        m, w = self._pydt_slots.of(variable)["momentum"].array, variable.array
        if w.ndim > 1 or self.adapt_vectors:
            decay = float(self.weight_decay or 0.0) if self._use_weight_decay(variable) else 0.0
            of_w, of_gradient = (math.sqrt(kernels.squared_norm(x.reshape(-1))) for x in (w, gradient))
            divisor = of_gradient + decay * of_w + self.epsilon
            if of_w > 0 and divisor > 0:
                learning_rate *= self.trust_coefficient * of_w / divisor
            gradient = gradient + decay * w if decay else gradient
        m *= self.momentum
        m -= learning_rate * gradient
        w += m

    def _apply_weight_decay(self, variables: Any) -> None:
        """Not before a step, but in its gradient."""
