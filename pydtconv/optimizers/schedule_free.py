"""AdamW without a schedule (Defazio et al., NeurIPS 2024), as Keras has it: the weights are a mean on their way.

v as in Adam;  z = z - lr g / (sqrt(v / (1 - beta_2^t)) + epsilon), which starts from w
x = (w - (1 - beta_1) z_before) / beta_1;  x = x + (z - x) / t;  w = (1 - beta_1) z + beta_1 x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.optimizer import Optimizer


class ScheduleFreeAdamW(Optimizer):
    """warmup_steps: over how many steps the learning rate rises from 0."""

    own_arguments = ("beta_1", "beta_2", "epsilon", "warmup_steps")

    def __init__(
        self,
        learning_rate: Any = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **shared: Unpack[Shared],
    ) -> None:
        check_numbers("ScheduleFreeAdamW", beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, warmup_steps=warmup_steps)
        if not beta_1:
            raise ValueError(f"ScheduleFreeAdamW: beta_1: expected a number above 0, got {beta_1!r}")
        super().__init__(learning_rate, **shared)
        self.beta_1, self.beta_2 = beta_1, beta_2
        self.epsilon = epsilon
        self.warmup_steps = warmup_steps

    def build(self, variables: Sequence[Variable], store: Any = None) -> None:
        """Makes the state of these variables, once."""
        if self.built:
            return
        super().build(variables)
        self._built_for = list(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        self.variables_replaced()

    def variables_replaced(self) -> None:
        """z starts from the weights that there are now."""
        if self.built:
            for momentum, variable in zip(self._momentums, self._built_for, strict=True):
                momentum.assign(variable.array)

    def update_step(self, gradient: np.ndarray, variable: Variable, learning_rate: float) -> None:
        """One variable's update, in place."""
        index, step = self._get_variable_index(variable), int(self.iterations) + 1
        z, v, y = self._momentums[index].array, self._velocities[index].array, variable.array
        if self.warmup_steps > 0:
            learning_rate *= min(step / self.warmup_steps, 1.0)
        x = (y - (1 - self.beta_1) * z) / self.beta_1
        v += (np.square(gradient) - v) * (1 - self.beta_2)
        z -= learning_rate * gradient / (np.sqrt(v / (1 - self.beta_2**step)) + self.epsilon)
        x += (z - x) / step
        y[...] = (1 - self.beta_1) * z + self.beta_1 * x
