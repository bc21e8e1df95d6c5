"""Arguments of all optimizers: names, defaults, checks."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import numpy as np

from pydtconv.optimizers.scalar import Scalar
from pydtconv.optimizers.schedules import LearningRateSchedule, deserialize


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


def with_shared(constructor: Callable[..., None]) -> Callable[..., None]:
    """A constructor with `**shared`, which takes those arguments by place, too, and shows them in Keras's order."""
    own = inspect.signature(constructor)
    if not any(p.kind is p.VAR_KEYWORD and p.name == "shared" for p in own.parameters.values()):
        return constructor
    kept = [p for p in own.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = {p.name for p in kept}
    more = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for name, default in DEFAULTS.items()
        if name not in named
    ]
    every = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
    signature = inspect.Signature([*kept, *more, every])

    @functools.wraps(constructor)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) + 1 > len(kept):
            bound = signature.bind(self, *args, **kwargs).arguments
            args, kwargs = (), {**bound.pop("kwargs", {}), **bound}
            kwargs.pop(next(iter(signature.parameters)))
        constructor(self, *args, **kwargs)

    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    return wrapper


#: arguments from 0 to 1, and arguments of 0 or more
SHARES = ("beta_1", "beta_2", "rho", "momentum", "ema_momentum")
NOT_NEGATIVE = ("epsilon", "clipnorm", "clipvalue", "global_clipnorm", "weight_decay", "initial_accumulator_value")


def check_numbers(kind: str, **values: Any) -> None:
    """Raises ValueError, naming the argument, for what is no finite number, or not in the range that the name has."""
    for name, value in values.items():
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise ValueError(f"{kind}: {name}: expected a finite number, got {value!r}")
        if name in SHARES and not 0 <= value <= 1:
            raise ValueError(f"{kind}: expected {name} between 0 and 1, got {value!r}")
        if name in NOT_NEGATIVE and value < 0:
            raise ValueError(f"{kind}: {name}: expected a number of 0 or more, got {value!r}")


def check_values(kind: str, values: Mapping[str, Any]) -> None:
    """Raises ValueError for values that cannot be, or do not go together."""
    numbers = ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "loss_scale_factor")
    check_numbers(kind, **{name: values[name] for name in numbers if values[name] not in (None, False)})
    check_numbers(kind, ema_momentum=values["ema_momentum"])
    clips = {name: values[name] for name in ("clipnorm", "clipvalue", "global_clipnorm") if values[name] is not None}
    if len(clips) > 1:
        raise ValueError(f"{kind}: expected at most one of clipnorm, clipvalue and global_clipnorm, got {clips}")
    for name, limit in ("gradient_accumulation_steps", 2), ("ema_overwrite_frequency", 1):
        value = values[name]
        if value is not None and (not isinstance(value, (int, np.integer)) or value < limit):
            raise ValueError(f"{kind}: expected {name} to be an integer of {limit} or more, got {value!r}")


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
    check_numbers(kind, learning_rate=value)
    return Scalar(value, "float64", "learning_rate")
