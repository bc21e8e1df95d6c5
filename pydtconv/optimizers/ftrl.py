"""Follow the regularized leader (McMahan et al., KDD 2013), q the negative of learning_rate_power.

n' = n + g^2;  z = z + (g + 2 * shrinkage * w) - (n'^q - n^q) / lr * w
w = (clip(z, -l1, l1) - z) / (n'^q / lr + 2 * (l2 + beta / (2 * lr)));  n = n'
"""

from __future__ import annotations

from typing import Any, Unpack

from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.flat_step import Arrays, Flat
from pydtconv.optimizers.optimizer import Optimizer


class Ftrl(Optimizer):
    """Online learning with L1 and L2 regularization."""

    slot_names = ("accumulator", "linear")
    runs_on_devices = True
    own_arguments = (
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
        "beta",
    )

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **shared: Unpack[Shared],
    ) -> None:
        check_numbers(
            "Ftrl",
            learning_rate_power=learning_rate_power,
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength,
            beta=beta,
        )
        super().__init__(learning_rate, **shared)
        if initial_accumulator_value < 0 or learning_rate_power > 0:
            raise ValueError(
                "Ftrl: expected initial_accumulator_value of 0 or more and learning_rate_power of 0 or less, "
                f"got {initial_accumulator_value!r} and {learning_rate_power!r}"
            )
        strengths = (l1_regularization_strength, l2_regularization_strength, l2_shrinkage_regularization_strength)
        if min(strengths) < 0:
            raise ValueError(f"Ftrl: expected regularization strengths of 0 or more, got {strengths}")
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta

    def slot_initial(self, name: str) -> float:
        return self.initial_accumulator_value if name == "accumulator" else 0.0

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        kernels.ftrl(
            w,
            dw,
            slots["accumulator"],
            slots["linear"],
            learning_rate,
            self.learning_rate_power,
            self.l1_regularization_strength,
            self.l2_regularization_strength,
            self.l2_shrinkage_regularization_strength,
            self.beta,
            weight_decay,
        )
