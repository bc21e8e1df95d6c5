"""Regularizers: penalties on weights (or outputs) that are added to the loss, as symbolic functions of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.serialization.objects import arguments_of
from pydtconv.suggest import refusal as _refusal


class Regularizer:
    """Base of all regularizers: a callable that gives a scalar for a tensor."""

    def __call__(self, x: Any) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} has no get_config(), which saving needs")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        return cls(**arguments_of(config))


class L1L2(Regularizer):
    """l1 * sum |x| + l2 * sum x^2."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = _penalty("l1", 0.0 if l1 is None else l1)
        self.l2 = _penalty("l2", 0.0 if l2 is None else l2)

    def __call__(self, x: Any) -> Any:
        return ops.L1L2Penalty(l1=self.l1, l2=self.l2)(x)

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1, "l2": self.l2}


class L1(L1L2):
    """l1 * sum |x|."""

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(0.01 if l1 is None else l1, 0.0)

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1}


class L2(L1L2):
    """l2 * sum x^2."""

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(0.0, 0.01 if l2 is None else l2)

    def get_config(self) -> dict[str, Any]:
        return {"l2": self.l2}


class OrthogonalRegularizer(Regularizer):
    """factor times the mean of |cos| between the rows (or columns) of a matrix."""

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        if mode not in ("rows", "columns"):
            raise ValueError(f"OrthogonalRegularizer: mode: expected 'rows' or 'columns', got {mode!r}")
        self.factor = _penalty("factor", factor)
        self.mode = mode

    def __call__(self, x: Any) -> Any:
        if len(x.shape) != 2:
            raise ValueError(f"OrthogonalRegularizer: expected a matrix, got shape {tuple(x.shape)}")
        x = x if self.mode == "rows" else ops.transpose(x, (1, 0))
        size = x.shape[0]
        sums = ops.sum(ops.square(x), 1, keepdims=True)
        x = ops.multiply(x, ops.rsqrt(ops.maximum(sums, 1e-12)))
        others = np.ones((size, size), "float32") - np.eye(size, dtype="float32")
        total = ops.sum(ops.abs(ops.multiply(ops.matmul(x, ops.transpose(x, (1, 0))), others)))
        return ops.multiply(total, self.factor * 0.5 / (size * (size - 1) / 2))

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "mode": self.mode}


def _penalty(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"regularizer: {name}: expected a number of 0 or more, got {value!r}")
    return float(value)


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
_orthogonal = {"OrthogonalRegularizer": OrthogonalRegularizer, "orthogonal_regularizer": OrthogonalRegularizer}
_registry = BuiltIns(
    "regularizer", {"L1": L1, "L2": L2, "L1L2": L1L2, "l1": L1, "l2": L2, "l1_l2": L1L2, "l1l2": L1L2, **_orthogonal}
)


def get(identifier: Any) -> Any:
    """The regularizer that identifier names: a name, a config, a class, a callable, or None."""
    return _registry.get(identifier)


def serialize(regularizer: Any) -> Any:
    return _registry.serialize(regularizer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    return _registry.deserialize(config, custom_objects)


__getattr__ = _refusal(__name__, [name for name in globals() if not name.startswith("_")])
