"""Lion (Chen et al., NeurIPS 2023, algorithm 2).

w = w - lr * sign(beta_1 * m + (1 - beta_1) * g);  m = beta_2 * m + (1 - beta_2) * g
"""

from __future__ import annotations

from typing import Any, Unpack

from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.flat_step import Arrays, Flat
from pydtconv.optimizers.optimizer import Optimizer


class Lion(Optimizer):
    """Steps of one size, in the direction of a mixture of gradient and momentum."""

    runs_on_devices = True
    slot_names = ("momentum",)
    own_arguments = ("beta_1", "beta_2")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **shared: Unpack[Shared]
    ) -> None:
        check_numbers("Lion", beta_1=beta_1, beta_2=beta_2)
        if not 0 < beta_1 <= 1:
            raise ValueError(f"Lion: expected beta_1 above 0 and at most 1, got {beta_1!r}")
        super().__init__(learning_rate, **shared)
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        kernels.lion(w, dw, slots["momentum"], learning_rate, self.beta_1, self.beta_2, weight_decay)
