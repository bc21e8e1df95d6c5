"""RMSprop (Tieleman and Hinton, Neural Networks for Machine Learning, lecture 6e, 2012).

v = rho * v + (1 - rho) * g^2
a = rho * a + (1 - rho) * g                           (centered)
d = lr * g / sqrt(v - a^2 + epsilon)                  (without a^2 unless centered)
m = momentum * m + d;  w = w - m                      (w = w - d without momentum)
"""

from __future__ import annotations

from typing import Any, Unpack

from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.flat_step import Arrays, Flat
from pydtconv.optimizers.optimizer import Optimizer


class RMSprop(Optimizer):
    """Steps divided by a moving root mean square of the gradient."""

    runs_on_devices = True
    last_slots = ("momentum", "average_gradient")
    own_arguments = ("rho", "momentum", "epsilon", "centered")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **shared: Unpack[Shared],
    ) -> None:
        check_numbers("RMSprop", rho=rho, momentum=momentum, epsilon=epsilon)
        super().__init__(learning_rate, **shared)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered
        self.slot_names = (
            "velocity",
            *(("momentum",) if momentum > 0 else ()),
            *(("average_gradient",) if centered else ()),
        )

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        kernels.rmsprop(
            w,
            dw,
            slots["velocity"],
            learning_rate,
            self.rho,
            self.momentum,
            self.epsilon,
            weight_decay,
            slots.get("average_gradient"),
            slots.get("momentum"),
        )
