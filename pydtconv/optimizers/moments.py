"""What Adam and its relatives share: moving averages of the gradient and of its size, and the settings of both."""

from __future__ import annotations

from typing import Any, Unpack

from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.optimizer import Optimizer


class AdaptiveMoments(Optimizer):
    """Steps by a first moment of decay `beta_1` and a second one of decay `beta_2`; `epsilon` is added to its root."""

    slot_names: tuple[str, ...] = ("momentum", "velocity")
    own_arguments: tuple[str, ...] = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **shared: Unpack[Shared],
    ) -> None:
        check_numbers(type(self).__name__, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)
        super().__init__(learning_rate, **shared)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
