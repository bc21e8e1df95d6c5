"""The update steps of `_ext.optimizers`, on NumPy arrays and on those of devices.

Each function is the one of that name in pydtconv/_ext/optimizers.pyx; a device has those of devices/updates.py.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from pydtconv import devices
from pydtconv._ext import optimizers as _on_cpu


def _run(name: str, on_cpu: Any, *arguments: Any) -> Any:
    if isinstance(arguments[0], np.ndarray):
        return on_cpu(*arguments)
    return devices.of(arguments[0]).update(name, *arguments)  # type: ignore[attr-defined]


def _function(name: str) -> Any:
    return functools.partial(_run, name, getattr(_on_cpu, name))


sgd, momentum, rmsprop, adam, nadam, adagrad, adadelta, adamax, lion, ftrl = map(
    _function,
    ("sgd", "momentum", "rmsprop", "adam", "nadam", "adagrad", "adadelta", "adamax", "lion", "ftrl"),
)
scale, clip, add_scaled, moving_average, squared_norm, has_nonfinite = map(
    _function, ("scale", "clip", "add_scaled", "moving_average", "squared_norm", "has_nonfinite")
)


def take_mean(total: Any, count: int, gradients: Any) -> None:
    """gradients = total / count, total = 0"""
    if isinstance(total, np.ndarray):
        np.divide(total, count, out=gradients)
        total.fill(0)
    else:
        devices.of(total).update("take_mean", total, count, gradients)  # type: ignore[attr-defined]


def assign(target: Any, value: Any) -> None:
    """target = value"""
    if isinstance(target, np.ndarray):
        target[...] = value
    else:
        devices.of(target).update("assign", target, value)  # type: ignore[attr-defined]
