"""Ends training when a result stops getting better."""

from __future__ import annotations

from typing import Any

from pydtconv.callbacks.callback import Logs
from pydtconv.callbacks.monitor import Monitor, say


class EarlyStopping(Monitor):
    """Stops after `patience` epochs without improvement of `monitor` by more than min_delta.

    baseline: a value to be beaten within the patience.  restore_best_weights: at the end the weights of the best epoch
    come back.  start_from_epoch: epochs before this one are not looked at.
    """

    steers = True
    state_names = ("wait", "stopped_epoch", "best", "best_epoch", "best_weights")

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.restore_best_weights = restore_best_weights
        self.start_from_epoch = start_from_epoch
        self.on_train_begin()

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.best: Any = None
        self.best_epoch = 0
        self.best_weights: Any = None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        value = self.value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            # the first epoch, so that there is something to come back to
            self.best_weights, self.best_epoch = self.model.get_weights(), epoch
        self.wait += 1
        if self.better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self.better(value, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.stopped_epoch > 0:
            say(self.verbose, f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            say(self.verbose, f"Restoring the weights of the best epoch: {self.best_epoch + 1}")
            self.model.set_weights(self.best_weights)
