"""Stochastic gradient descent.

w = w - lr * g                  (without momentum)
v = momentum * v - lr * g
w = w + v                       (momentum)
w = w + momentum * v - lr * g   (Nesterov; Sutskever et al., ICML 2013)
"""

from __future__ import annotations

from typing import Any, Unpack

from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.flat_step import Arrays, Flat
from pydtconv.optimizers.optimizer import Optimizer


class SGD(Optimizer):
    """Gradient descent, with momentum."""

    runs_on_devices = True
    own_arguments = ("momentum", "nesterov")

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, **shared: Unpack[Shared]
    ) -> None:
        check_numbers("SGD", momentum=momentum)
        if not 0 <= momentum <= 1:
            raise ValueError(f"SGD: expected momentum between 0 and 1, got {momentum!r}")
        super().__init__(learning_rate, **shared)
        self.momentum = momentum
        self.nesterov = nesterov
        self.slot_names = ("momentum",) if momentum else ()

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        if self.momentum:
            v = slots["momentum"]
            kernels.momentum(w, dw, v, learning_rate, self.momentum, self.nesterov, weight_decay)
        else:
            kernels.sgd(w, dw, learning_rate, weight_decay)
