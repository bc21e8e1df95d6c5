"""Initializers whose variance follows from the numbers of inputs and outputs of a weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import name_of
from pydtconv.initializers.initializer import Shape
from pydtconv.initializers.random import TRUNCATED_STDDEV, RandomInitializer, standard_truncated_normal

if TYPE_CHECKING:
    from pydtconv.ops.functions.tables.random import SeedGenerator


def compute_fans(
    shape: Shape, input_axes: Sequence[int] | None = None, output_axes: Sequence[int] | None = None
) -> tuple[int, int]:
    """The numbers of inputs and outputs of one unit of a weight: (kh, kw, ci, co) has kh*kw*ci and kh*kw*co."""
    if input_axes is not None and output_axes is not None:
        return math.prod(shape[axis] for axis in input_axes), math.prod(shape[axis] for axis in output_axes)
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]


class VarianceScaling(RandomInitializer):
    """Variance scale / n, where n is the number of inputs ("fan_in"), outputs ("fan_out") or their mean ("fan_avg").

    distribution: "truncated_normal" (with this variance after it is cut off), "untruncated_normal" or "uniform" on
    [-limit, limit) with limit = sqrt(3 scale / n).  input_axes, output_axes: the axes whose extents make the fans, for
    weights that are not laid out as (..., inputs, outputs).
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | SeedGenerator | None = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        distribution = distribution.lower()
        distribution = "truncated_normal" if distribution == "normal" else distribution
        if scale <= 0:
            raise ValueError(f"VarianceScaling: scale: expected a positive number, got {scale!r}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"VarianceScaling: mode: expected 'fan_in', 'fan_out' or 'fan_avg', got {mode!r}")
        if distribution not in ("truncated_normal", "untruncated_normal", "uniform"):
            raise ValueError(
                "VarianceScaling: distribution: expected 'truncated_normal', 'untruncated_normal' or 'uniform', "
                f"got {distribution!r}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.input_axes = input_axes
        self.output_axes = output_axes
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        shape = tuple(shape)
        fan_in, fan_out = compute_fans(shape, self.input_axes, self.output_axes)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, n)
        generator = self._generator()
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            values = generator.uniform(-limit, limit, shape)
        elif self.distribution == "untruncated_normal":
            values = generator.normal(0.0, math.sqrt(variance), shape)
        else:
            values = standard_truncated_normal(generator, shape) * (math.sqrt(variance) / TRUNCATED_STDDEV)
        return values.astype(name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        if type(self) is not VarianceScaling:
            own: dict[str, Any] = {}
        else:
            own = {"scale": self.scale, "mode": self.mode, "distribution": self.distribution}
        return {**own, **super().get_config(), "input_axes": self.input_axes, "output_axes": self.output_axes}


class _Scaled(VarianceScaling):
    """A VarianceScaling with scale, mode and distribution fixed."""

    _arguments: tuple[float, str, str]

    def __init__(
        self,
        seed: int | SeedGenerator | None = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        super().__init__(*self._arguments, seed, input_axes, output_axes)


class GlorotUniform(_Scaled):
    """Glorot, Bengio (AISTATS 2010): uniform, variance 2 / (fan_in + fan_out)."""

    _arguments = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Scaled):
    """Glorot, Bengio (AISTATS 2010): truncated normal, variance 2 / (fan_in + fan_out)."""

    _arguments = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Scaled):
    """He et al. (ICCV 2015): uniform, variance 2 / fan_in."""

    _arguments = (2.0, "fan_in", "uniform")


class HeNormal(_Scaled):
    """He et al. (ICCV 2015): truncated normal, variance 2 / fan_in."""

    _arguments = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Scaled):
    """LeCun et al. (Efficient BackProp, 1998): uniform, variance 1 / fan_in."""

    _arguments = (1.0, "fan_in", "uniform")


class LecunNormal(_Scaled):
    """LeCun et al. (Efficient BackProp, 1998): truncated normal, variance 1 / fan_in."""

    _arguments = (1.0, "fan_in", "truncated_normal")
