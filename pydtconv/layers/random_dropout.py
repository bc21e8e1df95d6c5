"""Dropout whose noise keeps means and deviations: GaussianDropout, AlphaDropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv.layers.regularization import RandomLayer, concrete_noise_shape, noise_shape_of
from pydtconv.serialization.configurable import builtin


def _rate(layer: str, rate: float) -> float:
    if not 0 <= rate < 1:
        raise ValueError(f"{layer}: rate: expected a number from 0 up to 1, got {rate!r}")
    return float(rate)


@builtin
class GaussianDropout(RandomLayer):
    """In training, times normal noise of mean 1 and variance rate / (1 - rate); Srivastava et al. (2014)."""

    carries_masks = True

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(seed, **kwargs)
        self.rate = _rate("GaussianDropout", rate)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or not self.rate:
            return inputs
        noise = ops.GaussianNoise(math.sqrt(self.rate / (1 - self.rate)), self._seed_of_call(), True)
        return ops.multiply(inputs, noise(ops.ones_like(inputs)))


#: what SELU gives for very small x: minus scale times alpha (Klambauer et al., 2017)
_LEAST = -1.0507009873554805 * 1.6732632423543772


@builtin
class AlphaDropout(RandomLayer):
    """In training, a share of the elements is SELU's least value, and mean and variance are kept; Klambauer (2017)."""

    carries_masks = True

    def __init__(
        self, rate: float, noise_shape: Sequence[int | None] | None = None, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        self.rate = _rate("AlphaDropout", rate)
        self.noise_shape = noise_shape_of(self, noise_shape)

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or not self.rate:
            return inputs
        mask = ops.Dropout(self.rate, concrete_noise_shape(self, inputs.shape), self._seed_of_call(), True)(
            ops.ones_like(inputs)
        )
        kept = ops.multiply(mask, 1 - self.rate)  # 1 or 0
        scale = ((1 - self.rate) * (1 + self.rate * _LEAST**2)) ** -0.5
        y = ops.add(ops.multiply(inputs, kept), ops.multiply(ops.subtract(1.0, kept), _LEAST))
        return ops.add(ops.multiply(y, scale), -scale * _LEAST * self.rate)
