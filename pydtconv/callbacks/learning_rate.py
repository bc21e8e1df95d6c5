"""Changes of the learning rate from epoch to epoch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.callbacks.monitor import Monitor, say


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch to schedule(epoch, rate), or schedule(epoch)."""

    steers = True

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        if not callable(schedule):
            raise TypeError(f"LearningRateScheduler: expected schedule to be callable, got {schedule!r}")
        self.schedule = schedule
        self.verbose = verbose
        try:
            inspect.signature(schedule).bind(0, 0.1)
            self._takes_rate = True
        except TypeError:
            self._takes_rate = False

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        current = float(self.model.optimizer.learning_rate)
        rate = self.schedule(epoch, current) if self._takes_rate else self.schedule(epoch)
        if isinstance(rate, bool) or not isinstance(rate, (int, float, np.number, np.ndarray)) or np.ndim(rate):
            raise ValueError(f"LearningRateScheduler: expected schedule to return a number, got {rate!r}")
        self.model.optimizer.learning_rate = float(rate)
        say(self.verbose, f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {float(rate)}.")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class ReduceLROnPlateau(Monitor):
    """Multiplies the learning rate by factor after `patience` epochs without improvement of `monitor`.

    cooldown: epochs after a reduction that do not count.  min_lr: the rate goes no lower.
    """

    steers = True
    state_names = ("best", "wait", "cooldown_counter")

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            raise TypeError(f"ReduceLROnPlateau: unknown argument {next(iter(kwargs))!r}")
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: expected factor below 1, got {factor!r}")
        super().__init__(monitor, mode, min_delta)
        self.factor = factor
        self.patience = patience
        self.verbose = verbose
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.on_train_begin()

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.best: float | None = None
        self.cooldown_counter = 0
        self.wait = 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        logs = {} if logs is None else logs
        optimizer = self.model.optimizer
        logs["learning_rate"] = float(optimizer.learning_rate)
        value = self.value(logs)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.better(value, self.best):
            self.best = value
            self.wait = 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(epoch)

    def _reduce(self, epoch: int) -> None:
        optimizer = self.model.optimizer
        old = float(optimizer.learning_rate)
        if old > self.min_lr:
            rate = max(old * self.factor, self.min_lr)
            optimizer.learning_rate = rate
            say(self.verbose, f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {rate}.")
            self.cooldown_counter = self.cooldown
            self.wait = 0
