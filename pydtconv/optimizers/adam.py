"""Adam and its relatives.

Adam (Kingma and Ba, ICLR 2015, with the correction of section 2's end), t the number of the step:
    m = m + (1 - beta_1) * (g - m);  v = v + (1 - beta_2) * (g^2 - v)
    w = w - lr * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon)
AMSGrad (Reddi et al., ICLR 2018) reads the largest v so far instead of v.
AdamW (Loshchilov and Hutter, ICLR 2019) is Adam with weight decay.
Nadam (Dozat, ICLR workshop 2016) is Adam with Nesterov momentum, under the momentum schedule
    u_t = beta_1 * (1 - 0.5 * 0.96^t).
Adamax (Kingma and Ba, section 7.1):
    m as above;  u = max(beta_2 * u, |g|);  w = w - lr / (1 - beta_1^t) * m / (u + epsilon)
"""

from __future__ import annotations

from typing import Any, Unpack

from pydtconv.graph.ir.variable import Variable
from pydtconv.optimizers import kernels
from pydtconv.optimizers.arguments import Shared
from pydtconv.optimizers.flat_step import Arrays, Flat
from pydtconv.optimizers.moments import AdaptiveMoments
from pydtconv.optimizers.scalar import Scalar


class Adam(AdaptiveMoments):
    """Steps by moving averages of the gradient and of its square."""

    runs_on_devices = True
    last_slots = ("velocity_hat",)
    own_arguments = ("beta_1", "beta_2", "epsilon", "amsgrad")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **shared)
        self.amsgrad = amsgrad
        self.slot_names = ("momentum", "velocity", *(("velocity_hat",) if amsgrad else ()))

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        kernels.adam(
            w,
            dw,
            slots["momentum"],
            slots["velocity"],
            learning_rate,
            self.beta_1,
            self.beta_2,
            self.epsilon,
            int(self.iterations) + 1,
            weight_decay,
            slots.get("velocity_hat"),
        )


class AdamW(Adam):
    """Adam with weight decay apart from the gradient."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **shared: Any,
    ) -> None:
        if weight_decay is None:
            raise ValueError("AdamW: expected weight_decay to be a float, got None; Adam is the same without it")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **shared)


class Nadam(AdaptiveMoments):
    """Adam with Nesterov momentum."""

    runs_on_devices = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **shared)
        self._product = Scalar(1.0, "float64", "u_product")

    def make_states(self) -> list[Variable]:
        return [self._product]

    def begin_step(self) -> None:
        self._product.array[...] *= self.beta_1 * (1 - 0.5 * 0.96 ** (int(self.iterations) + 1))

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        kernels.nadam(
            w,
            dw,
            slots["momentum"],
            slots["velocity"],
            learning_rate,
            self.beta_1,
            self.beta_2,
            self.epsilon,
            int(self.iterations) + 1,
            float(self._product),
            weight_decay,
        )


class Adamax(AdaptiveMoments):
    """Adam by the largest instead of the mean square gradient."""

    runs_on_devices = True
    slot_names = ("momentum", "norm")

    def update(self, w: Flat, dw: Flat, slots: Arrays, learning_rate: float, weight_decay: float) -> None:
        kernels.adamax(
            w,
            dw,
            slots["momentum"],
            slots["norm"],
            learning_rate,
            self.beta_1,
            self.beta_2,
            self.epsilon,
            int(self.iterations) + 1,
            weight_decay,
        )
