"""Adagrad and Adadelta.

Adagrad (Duchi, Hazan, Singer, JMLR 2011):
    a = a + g^2;  w = w - lr * g / sqrt(a + epsilon)
Adadelta (Zeiler, 2012, algorithm 1):
    a = rho * a + (1 - rho) * g^2;  d = g * sqrt(b + epsilon) / sqrt(a + epsilon)
    b = rho * b + (1 - rho) * d^2;  w = w - lr * d
"""

from __future__ import annotations

from typing import Any, Unpack

from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.flat_step import Arrays, Flat
from pydtconv.optimizers.optimizer import Optimizer


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients."""

    runs_on_devices = True
    slot_names = ("accumulator",)
    own_arguments = ("initial_accumulator_value", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **shared: Unpack[Shared],
    ) -> None:
        check_numbers("Adagrad", initial_accumulator_value=initial_accumulator_value, epsilon=epsilon)
        super().__init__(learning_rate, **shared)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def slot_initial(self, name: str) -> float:
        return self.initial_accumulator_value if name == "accumulator" else 0.0

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        kernels.adagrad(w, dw, slots["accumulator"], learning_rate, self.epsilon, weight_decay)


class Adadelta(Optimizer):
    """Steps in the ratio of moving root mean squares of changes and gradients."""

    runs_on_devices = True
    slot_names = ("accumulated_grad", "accumulated_delta_var")
    own_arguments = ("rho", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **shared: Unpack[Shared]
    ) -> None:
        check_numbers("Adadelta", rho=rho, epsilon=epsilon)
        super().__init__(learning_rate, **shared)
        self.rho = rho
        self.epsilon = epsilon

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        a, b = slots["accumulated_grad"], slots["accumulated_delta_var"]
        kernels.adadelta(w, dw, a, b, learning_rate, self.rho, self.epsilon, weight_decay)
