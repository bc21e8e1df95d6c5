"""Writes the model, or its weights, while it is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydtconv import replica
from pydtconv.callbacks.callback import Logs
from pydtconv.callbacks.monitor import Monitor, say
from pydtconv.files.whole_file import before_training, check_writable, training_goes_on


class ModelCheckpoint(Monitor):
    """Writes after each epoch, or after save_freq batches.

    filepath: ends in ".keras" or ".h5", or in ".weights.h5" with save_weights_only; `{epoch}` (counted from 1),
    `{batch}` and the results' names are filled in, as in "model-{epoch:02d}-{val_loss:.2f}.keras".
    save_best_only: only when `monitor` got better (than initial_value_threshold, at first); where there is no such
    result, and there was none before, the model is saved with a warning.
    A file is written whole or not at all.  A folder that cannot be written to is an OSError before training begins.
    When the disk is full later, a warning says so and training goes on.
    """

    state_names = ("best", "_epoch", "_batches", "_last_batch")

    def __init__(
        self,
        filepath: str | Path,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: str | int = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode)
        self.filepath = str(filepath)
        self.verbose = verbose
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self.save_freq = save_freq
        if save_freq != "epoch" and (isinstance(save_freq, bool) or not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(f"ModelCheckpoint: expected save_freq 'epoch' or a number of batches, got {save_freq!r}")
        endings = (".weights.h5",) if save_weights_only else (".keras", ".h5")
        if not self.filepath.endswith(endings):
            raise ValueError(
                f"ModelCheckpoint: expected filepath to end in {' or '.join(map(repr, endings))} "
                f"(save_weights_only={save_weights_only}), got {self.filepath!r}"
            )
        self.best = initial_value_threshold
        self._epoch = 0
        self._batches = 0
        self._last_batch = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        if replica.current().is_main:
            with before_training("ModelCheckpoint"):  # what is filled in may name further folders
                check_writable(Path("".join(self.filepath.partition("{")[:2])))

    @property
    def saves_between_steps(self) -> bool:  # type: ignore[override]
        return self.save_freq != "epoch"

    @property
    def reads_state(self) -> bool:  # type: ignore[override]
        return not self.save_weights_only

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._epoch = epoch
        self._last_batch = -1

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if self.save_freq == "epoch":
            return
        self._batches += batch - self._last_batch
        self._last_batch = batch
        if self._batches >= int(self.save_freq):
            self._batches = 0
            self._save(self._epoch, batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.save_freq == "epoch":
            self._save(epoch, None, logs)

    def _save(self, epoch: int, batch: int | None, logs: Logs | None) -> None:
        path = self._path(epoch, batch, logs or {})
        if self.save_best_only:
            value = self.value(logs)
            if value is None:
                if self.best is None:  # nothing better is there that would be written over
                    self._write(path, epoch)
                return
            best = self.worst if self.best is None else self.best
            if not self.better(value, best):
                say(self.verbose, f"\nEpoch {epoch + 1}: {self.monitor} did not improve from {best:.5f}")
                return
            text = f"{self.monitor} improved from {best:.5f} to {value:.5f}, saving model to {path}"
            say(self.verbose, f"\nEpoch {epoch + 1}: {text}")
            self._write(path, epoch, best=value)
        else:
            say(self.verbose, f"\nEpoch {epoch + 1}: saving model to {path}")
            self._write(path, epoch)

    def _write(self, path: str, epoch: int, best: float | None = None) -> None:
        """best: what the result is then that others have to be better than; a model that is not written is not."""
        save = self.model.save_weights if self.save_weights_only else self.model.save
        with training_goes_on(f"ModelCheckpoint, epoch {epoch + 1}"):
            save(path, overwrite=True)
            self.best = self.best if best is None else best

    def _path(self, epoch: int, batch: int | None, logs: dict[str, Any]) -> str:
        names = {"epoch": epoch + 1, **({} if batch is None else {"batch": batch + 1}), **logs}
        try:
            return self.filepath.format(**names)
        except KeyError as error:
            raise KeyError(
                f"ModelCheckpoint: filepath {self.filepath!r} refers to {error.args[0]!r}; there are {', '.join(names)}"
            ) from error
