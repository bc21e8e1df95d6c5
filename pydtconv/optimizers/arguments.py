"""Arguments of all optimizers: names, defaults, checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from pydtconv.optimizers.scalar import Scalar
from pydtconv.optimizers.schedules import LearningRateSchedule, deserialize
from pydtconv.utils.suggest import near


class Shared(TypedDict, total=False):
    """Arguments of every optimizer; their defaults are `DEFAULTS`, their meaning is told in `Optimizer`."""

    weight_decay: float | None
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


DEFAULTS: dict[str, Any] = {
    "weight_decay": None,
    "clipnorm": None,
    "clipvalue": None,
    "global_clipnorm": None,
    "use_ema": False,
    "ema_momentum": 0.99,
    "ema_overwrite_frequency": None,
    "loss_scale_factor": None,
    "gradient_accumulation_steps": None,
    "name": None,
}


def check_names(kind: str, given: Mapping[str, Any]) -> None:
    """Raises TypeError for an argument that no optimizer has, with the near names."""
    for name in given:
        if name not in DEFAULTS:
            raise TypeError(f"{kind}: unknown argument {name!r}.{near(name, DEFAULTS)}")


def check_values(kind: str, values: Mapping[str, Any]) -> None:
    """Raises ValueError for values that cannot be, or do not go together."""
    clips = {name: values[name] for name in ("clipnorm", "clipvalue", "global_clipnorm") if values[name] is not None}
    if len(clips) > 1:
        raise ValueError(f"{kind}: expected at most one of clipnorm, clipvalue and global_clipnorm, got {clips}")
    for name, limit in ("gradient_accumulation_steps", 2), ("ema_overwrite_frequency", 1):
        value = values[name]
        if value is not None and (not isinstance(value, (int, np.integer)) or value < limit):
            raise ValueError(f"{kind}: expected {name} to be an integer of {limit} or more, got {value!r}")
    if not 0 <= values["ema_momentum"] <= 1:
        raise ValueError(f"{kind}: expected ema_momentum between 0 and 1, got {values['ema_momentum']!r}")


def is_rule(learning_rate: Any) -> bool:
    """Whether it is a schedule or a callable, which say the rate of each step."""
    callable_ = callable(learning_rate) and not hasattr(learning_rate, "__array__")
    return isinstance(learning_rate, LearningRateSchedule) or callable_


def as_learning_rate(kind: str, value: Any) -> Any:
    """A schedule or a callable as it is, the schedule of a config, or a variable of a number.  Raises ValueError."""
    if isinstance(value, Mapping):
        value = deserialize(value)
    if is_rule(value):
        return value
    if isinstance(value, (str, bytes)) or not np.isscalar(value):
        raise ValueError(
            f"{kind}: expected learning_rate to be a float, a LearningRateSchedule or a callable, got {value!r}"
        )
    return Scalar(value, "float64", "learning_rate")
