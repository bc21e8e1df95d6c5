"""Constraints: projections of a weight after each update, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.hooks import Returning
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.serialization.objects import arguments_of
from pydtconv.suggest import refusal as _refusal


class Constraint(Returning):
    """Base of all constraints: a callable from the weight to the weight that it becomes."""

    def __call__(self, w: Any) -> Any:
        return w

    def get_config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Constraint:
        return cls(**arguments_of(config))


class _Norm(Constraint):
    """Scales vectors along axis to a norm that `_wanted` gives."""

    axis: int | Sequence[int]

    def _wanted(self, norms: np.ndarray) -> Any:
        raise NotImplementedError

    def __call__(self, w: Any) -> np.ndarray:
        w = np.asarray(w)
        axis = self.axis if isinstance(self.axis, int) else tuple(self.axis)
        norms = np.sqrt(np.sum(np.square(w), axis=axis, keepdims=True))
        return (w * (self._wanted(norms) / (config.epsilon() + norms))).astype(w.dtype)


class MaxNorm(_Norm):
    """Norms of at most max_value along axis."""

    def __init__(self, max_value: float = 2, axis: int | Sequence[int] = 0) -> None:
        self.max_value = max_value
        self.axis = axis

    def _wanted(self, norms: np.ndarray) -> Any:
        return np.clip(norms, 0, self.max_value)

    def get_config(self) -> dict[str, Any]:
        return {"max_value": self.max_value, "axis": self.axis}


class UnitNorm(_Norm):
    """Norm 1 along axis."""

    def __init__(self, axis: int | Sequence[int] = 0) -> None:
        self.axis = axis

    def _wanted(self, norms: np.ndarray) -> Any:
        return 1.0

    def get_config(self) -> dict[str, Any]:
        return {"axis": self.axis}


class MinMaxNorm(_Norm):
    """Norms moved towards [min_value, max_value] along axis: all the way with rate 1."""

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: int | Sequence[int] = 0
    ) -> None:
        self.min_value = min_value
        self.max_value = max_value
        self.rate = rate
        self.axis = axis

    def _wanted(self, norms: np.ndarray) -> Any:
        return self.rate * np.clip(norms, self.min_value, self.max_value) + (1 - self.rate) * norms

    def get_config(self) -> dict[str, Any]:
        return {"min_value": self.min_value, "max_value": self.max_value, "rate": self.rate, "axis": self.axis}


class NonNeg(Constraint):
    """Nothing below 0."""

    def __call__(self, w: Any) -> np.ndarray:
        return np.maximum(w, 0)


max_norm, unit_norm, min_max_norm, non_neg = MaxNorm, UnitNorm, MinMaxNorm, NonNeg
_registry = BuiltIns(
    "constraint",
    {
        "MaxNorm": MaxNorm,
        "UnitNorm": UnitNorm,
        "MinMaxNorm": MinMaxNorm,
        "NonNeg": NonNeg,
        "max_norm": MaxNorm,
        "unit_norm": UnitNorm,
        "min_max_norm": MinMaxNorm,
        "non_neg": NonNeg,
    },
)


def get(identifier: Any) -> Any:
    """The constraint that identifier names: a name, a config, a class, a callable, or None."""
    return _registry.get(identifier)


def serialize(constraint: Any) -> Any:
    return _registry.serialize(constraint)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    return _registry.deserialize(config, custom_objects)


__getattr__ = _refusal(__name__, [name for name in globals() if not name.startswith("_")])
