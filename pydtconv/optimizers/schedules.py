"""Learning-rate schedules: functions of the step, with the names and arguments of `keras.optimizers.schedules`.

A schedule is called with the number of steps done so far and returns the learning rate of the next one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydtconv.hooks import Returning
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.serialization.objects import arguments_of
from pydtconv.suggest import refusal as _refusal


class LearningRateSchedule(Returning):
    """Base: subclasses write `__call__(step) -> float` and `get_config()`."""

    name: str

    def __call__(self, step: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, step)")

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} must define get_config(self) to be saved")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> LearningRateSchedule:
        return cls(**arguments_of(config))


class ExponentialDecay(LearningRateSchedule):
    """initial * decay_rate ** (step / decay_steps); the exponent is rounded down where staircase."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        decay_rate: float,
        staircase: bool = False,
        name: str = "ExponentialDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive(name, "decay_steps", decay_steps)
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: Any) -> float:
        done = float(step) / self.decay_steps
        return float(self.initial_learning_rate * self.decay_rate ** (math.floor(done) if self.staircase else done))

    def get_config(self) -> dict[str, Any]:
        return _config(self, "initial_learning_rate", "decay_steps", "decay_rate", "staircase", "name")


class InverseTimeDecay(LearningRateSchedule):
    """initial / (1 + decay_rate * step / decay_steps); the quotient is rounded down where staircase."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        decay_rate: float,
        staircase: bool = False,
        name: str = "InverseTimeDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive(name, "decay_steps", decay_steps)
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: Any) -> float:
        done = float(step) / self.decay_steps
        return float(
            self.initial_learning_rate / (1 + self.decay_rate * (math.floor(done) if self.staircase else done))
        )

    def get_config(self) -> dict[str, Any]:
        return _config(self, "initial_learning_rate", "decay_steps", "decay_rate", "staircase", "name")


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i], where i counts the boundaries that are smaller than the step."""

    def __init__(self, boundaries: Sequence[float], values: Sequence[float], name: str = "PiecewiseConstant") -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                f"PiecewiseConstantDecay: expected one value more than boundaries, "
                f"got {len(boundaries)} boundaries and {len(values)} values"
            )
        self.boundaries = boundaries
        self.values = values
        self.name = name

    def __call__(self, step: Any) -> float:
        return float(self.values[sum(float(step) > boundary for boundary in self.boundaries)])

    def get_config(self) -> dict[str, Any]:
        return {"boundaries": list(self.boundaries), "values": list(self.values), "name": self.name}


class PolynomialDecay(LearningRateSchedule):
    """end + (initial - end) * (1 - step / decay_steps) ** power; then constant, or in longer cycles where cycle."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive(name, "decay_steps", decay_steps)
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle
        self.name = name

    def __call__(self, step: Any) -> float:
        steps, total = float(step), float(self.decay_steps)
        if self.cycle:
            total *= max(math.ceil(steps / total), 1)
        else:
            steps = min(steps, total)
        span = self.initial_learning_rate - self.end_learning_rate
        return float(span * (1 - steps / total) ** self.power + self.end_learning_rate)

    def get_config(self) -> dict[str, Any]:
        return _config(self, "initial_learning_rate", "decay_steps", "end_learning_rate", "power", "cycle", "name")


class CosineDecay(LearningRateSchedule):
    """Half a cosine from the initial rate down to alpha times it, after a linear warm-up where warmup_target is given.

    Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", ICLR 2017, equation 5.
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        alpha: float = 0.0,
        name: str = "CosineDecay",
        warmup_target: float | None = None,
        warmup_steps: float = 0,
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = _positive(name, "decay_steps", decay_steps)
        self.alpha = alpha
        self.name = name
        self.warmup_target = warmup_target
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> float:
        steps = float(step)
        if self.warmup_target is None:
            return self._decayed(min(steps, self.decay_steps), self.initial_learning_rate)
        if steps < self.warmup_steps:
            rise = self.warmup_target - self.initial_learning_rate
            return float(self.initial_learning_rate + rise * steps / self.warmup_steps)
        return self._decayed(min(steps, self.decay_steps + self.warmup_steps) - self.warmup_steps, self.warmup_target)

    def _decayed(self, steps: float, start: float) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * steps / self.decay_steps))
        return float(start * ((1 - self.alpha) * cosine + self.alpha))

    def get_config(self) -> dict[str, Any]:
        return _config(self, "initial_learning_rate", "decay_steps", "alpha", "name", "warmup_target", "warmup_steps")


class CosineDecayRestarts(LearningRateSchedule):
    """Cosine decays one after the other, each t_mul times as long and m_mul times as high as the one before.

    Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", ICLR 2017, section 3.
    """

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: float,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "SGDRDecay",
    ) -> None:
        if not 0 < t_mul < float("inf"):
            raise ValueError(f"CosineDecayRestarts: t_mul: expected a positive number, got {t_mul!r}")
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = _positive(name, "first_decay_steps", first_decay_steps)
        self.t_mul = t_mul
        self.m_mul = m_mul
        self.alpha = alpha
        self.name = name

    def __call__(self, step: Any) -> float:
        done = float(step) / self.first_decay_steps
        if self.t_mul == 1.0:
            restarts = math.floor(done)
            done -= restarts
        else:
            restarts = math.floor(math.log(1 - done * (1 - self.t_mul)) / math.log(self.t_mul))
            before = (1 - self.t_mul**restarts) / (1 - self.t_mul)
            done = (done - before) / self.t_mul**restarts
        cosine = 0.5 * self.m_mul**restarts * (1 + math.cos(math.pi * done))
        return float(self.initial_learning_rate * ((1 - self.alpha) * cosine + self.alpha))

    def get_config(self) -> dict[str, Any]:
        return _config(self, "initial_learning_rate", "first_decay_steps", "t_mul", "m_mul", "alpha", "name")


class LinearScaling(LearningRateSchedule):
    """learning_rate * factor, reached linearly from learning_rate within the first warmup_steps.

    For a batch that is `factor` times as large as the one that learning_rate was chosen for; Goyal et al., "Accurate,
    Large Minibatch SGD" (2017), 2.1 and 2.2.  learning_rate: a number or another schedule.
    """

    def __init__(self, learning_rate: Any, factor: float, warmup_steps: float = 0, name: str = "LinearScaling") -> None:
        self.learning_rate = deserialize(learning_rate) if isinstance(learning_rate, Mapping) else learning_rate
        self.factor = _positive(name, "factor", factor)
        if not warmup_steps >= 0:
            raise ValueError(f"{name}: expected warmup_steps to be 0 or more, got {warmup_steps!r}")
        self.warmup_steps = warmup_steps
        self.name = name

    def __call__(self, step: Any) -> float:
        rate = self.learning_rate(step) if callable(self.learning_rate) else self.learning_rate
        done = min(float(step) / self.warmup_steps, 1.0) if self.warmup_steps else 1.0
        return float(rate) * (1 + (self.factor - 1) * done)

    def get_config(self) -> dict[str, Any]:
        rate = serialize(self.learning_rate) if callable(self.learning_rate) else self.learning_rate
        return {"learning_rate": rate} | _config(self, "factor", "warmup_steps", "name")


def _positive(name: str, argument: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{name}: expected {argument} to be positive, got {value!r}")
    return value


def _config(schedule: LearningRateSchedule, *names: str) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in names}


_schedules = {
    schedule.__name__: schedule
    for schedule in (
        ExponentialDecay,
        InverseTimeDecay,
        PiecewiseConstantDecay,
        PolynomialDecay,
        CosineDecay,
        CosineDecayRestarts,
        LinearScaling,
    )
}
_registry = BuiltIns("learning-rate schedule", _schedules)


def serialize(learning_rate_schedule: LearningRateSchedule) -> Any:
    """The schedule as a config that `deserialize` takes."""
    return _registry.serialize(learning_rate_schedule)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> LearningRateSchedule:
    """The schedule of a config.  Raises ValueError for an unknown class, with the near names."""
    return _registry.deserialize(config, custom_objects)


__getattr__ = _refusal(__name__, [name for name in globals() if not name.startswith("_")])
