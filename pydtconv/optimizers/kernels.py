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
