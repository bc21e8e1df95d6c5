"""Initializers that draw no random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import name_of, real_array
from pydtconv.initializers.initializer import Initializer, Shape


class Zeros(Initializer):
    """All 0."""

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return np.zeros(shape, name_of(dtype or config.floatx()))


class Ones(Initializer):
    """All 1."""

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return np.ones(shape, name_of(dtype or config.floatx()))


class Constant(Initializer):
    """All equal to value (a number, or an array that can be broadcast to the shape)."""

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return np.full(tuple(shape), real_array("Constant", self.value), name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        return {"value": np.asarray(self.value).tolist()}


class Identity(Initializer):
    """gain times the identity matrix; for matrices only."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        if len(shape) != 2:
            raise ValueError(f"Identity initializer: expected a shape of rank 2, got {tuple(shape)}")
        return self.gain * np.eye(shape[0], shape[1], dtype=name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain}
