"""Old arguments and attributes of optimizers; `decay` with the meaning that it had."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import optimizers
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import Rows, only, translated
from pydtconv.models import legacy_files

#: default learning rates of Keras 1 to 2.3 that are others now
OLD_RATES = {"Adadelta": 1.0, "Adagrad": 0.01, "Adamax": 0.002, "Nadam": 0.002}
ROWS: Rows = {"lr": "learning_rate", "schedule_decay": only(0.004)}


def rate_at(rate: float, decay: float, step: int) -> float:
    """The learning rate of a step: rate / (1 + decay step)."""
    return rate / (1.0 + decay * step)


def _init(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    name = type(self).__name__
    kwargs = translated(name, ROWS, kwargs, *(("learning_rate",) if args else ()))
    decay = kwargs.pop("decay", None)
    for old in ("epsilon", "clipnorm", "clipvalue"):
        if old in kwargs and kwargs[old] is None:
            del kwargs[old]
    if name in OLD_RATES and not args and "learning_rate" not in kwargs:
        noticed.once(
            name,
            f"{name}(): learning_rate is 0.001, as in Keras 3 and tf.keras; in Keras 1 to 2.3 it was "
            f"{OLD_RATES[name]}: write learning_rate=",
        )
    original(self, *args, **kwargs)
    if decay:
        if not 0 < decay < np.inf:
            raise ValueError(f"{name}: decay: expected a number of 0 or more, got {decay!r}")
        if callable(self._pydt_learning_rate) and not hasattr(self._pydt_learning_rate, "assign"):
            raise ValueError(f"{name}: decay: expected none with a schedule of the learning rate, got {decay!r}")
        noticed.once("decay", f"{name}: decay is an old argument: write optimizers.schedules.InverseTimeDecay")
    self._pydt_old_decay = np.float64(decay or 0.0)
    if not hasattr(type(self), "decay"):
        self.decay = self._pydt_old_decay


def _begin(original: Any, self: Any, store: Any) -> None:
    """The start of a step, whose rate has decayed; `learning_rate` itself stays what it is, as callbacks set it."""
    original(self, store)
    decay = self.__dict__.get("_pydt_old_decay")
    if decay:
        self._pydt_rate = rate_at(self._pydt_rate, float(decay), int(self._pydt_steps))


def _config(original: Any, self: Any) -> dict[str, Any]:
    config = original(self)
    decay = float(self.__dict__.get("_pydt_old_decay") or 0.0)
    return {**config, "decay": decay} if decay else config


def _get_rate(self: Any) -> Any:
    noticed.once("optimizer.lr", "optimizer.lr is an old name: write optimizer.learning_rate")
    return self.learning_rate


def _set_rate(self: Any, value: Any) -> None:
    noticed.once("optimizer.lr", "optimizer.lr is an old name: write optimizer.learning_rate")
    self.learning_rate = value


def install() -> None:
    """Lets optimizers take their old arguments."""
    base: Any = optimizers.Optimizer
    own = [getattr(optimizers, name) for name in optimizers.__all__]
    for cls in own:
        if isinstance(cls, type) and issubclass(cls, base):
            patches.around(cls, "__init__", _init)
    patches.around(base, "begin", _begin)
    patches.around(base, "get_config", _config)
    patches.put(base, "lr", property(_get_rate, _set_rate))
    patches.put(legacy_files, "decayed", lambda rate, decay: {"decay": decay})
