"""Checkpoints of all of training, from which it resumes where it was interrupted."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import replica
from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.callbacks.monitor import say
from pydtconv.checkpoints import CheckpointError, Checkpoints, check_state, restore_training, training_state
from pydtconv.checkpoints.interrupts import Interrupts
from pydtconv.files.whole_file import before_training, training_goes_on


class BackupAndRestore(Callback):
    """Writes checkpoints into a folder; fit resumes from the newest one there, as if it had never been interrupted.

    backup_dir: a folder for this training alone, or a `checkpoints.Checkpoints` (which says how many files are kept).
    save_freq: "epoch", a number of batches, or False for interrupts only.  double_checkpoint: keep the one before, too.
    delete_checkpoint: take the checkpoints away when training has reached its end.

    A checkpoint holds weights, the optimizer's state, the position within the epoch with the order of the data, random
    states, metrics, callbacks and history: on equal threads the run that goes on has the bits of one that was not
    interrupted.  It is written after all other callbacks were called.  Damaged ones are passed over with a warning.
    A folder that cannot be written to is an OSError before training begins.  When the disk is full later, a warning
    says so, training goes on, and what was written before stays.  Nothing is written where the loss is not finite.

    On Ctrl-C, SIGTERM or SIGHUP the step is finished, a checkpoint is written, and fit ends with KeyboardInterrupt or
    the exit status 143 or 129; a second one ends at once.  A handler of your own is left alone.  Signals reach the
    main thread alone: where fit runs in another one, they end the program without a checkpoint, and save_freq=False
    makes a warning.  Where offload fails (`fit(offload=...)`) before the optimizer has changed anything, a checkpoint
    of the moment before that step is written.

    Of several processes that train one model the first one writes, and all go on from its newest checkpoint; their
    number may be another one then, with the same meaning.
    """

    runs_last = True
    steers = True

    def __init__(
        self,
        backup_dir: str | Path | Checkpoints,
        save_freq: str | int = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
    ) -> None:
        super().__init__()
        if not backup_dir:
            raise ValueError(f"BackupAndRestore: expected backup_dir to be the name of a folder, got {backup_dir!r}")
        if save_freq != "epoch" and save_freq is not False and not _is_count(save_freq):
            raise ValueError(f"BackupAndRestore: expected save_freq 'epoch' or a number of batches, got {save_freq!r}")
        if not isinstance(backup_dir, Checkpoints):
            backup_dir = Checkpoints(backup_dir, keep=2 if double_checkpoint else 1)
        self.checkpoints = backup_dir
        self.backup_dir = str(self.checkpoints.folder)
        self.save_freq = save_freq
        self.double_checkpoint = double_checkpoint
        self.delete_checkpoint = delete_checkpoint
        self._interrupts = Interrupts()
        self._state: dict[str, Any] | None = None
        self._batches = 0
        self._last_batch = -1
        self._fitting = False

    #: batches since the last checkpoint by save_freq
    state_names = ("_batches", "_last_batch")

    # --- going on --------------------------------------------------------------------------------------------------
    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._batches, self._last_batch, self._fitting = 0, -1, True
        if not self._interrupts.hold() and self.save_freq is False:
            text = (
                "expected fit to run in the main thread, which signals reach: save_freq=False writes nothing elsewhere"
            )
            warnings.warn(f"BackupAndRestore: {text}", UserWarning, stacklevel=2)
        path, state = self._found()
        if state is None:
            return
        try:
            self._restore(state)
        except ValueError as error:
            kind = type(error) if isinstance(error, CheckpointError) else ValueError
            raise kind(f"{path}: {error}") from error
        position = self.model._pydt_position
        say(self.params.get("verbose"), f"going on with {position}, from {path}")

    def _found(self) -> tuple[Path | None, dict[str, Any] | None]:
        """The newest checkpoint, in all processes that of the first one.  Raises OSError in all of them."""
        here, found, error = replica.current(), None, None
        if here.is_main:
            try:
                with before_training("BackupAndRestore"):
                    self.checkpoints.prepare()
                found = self.checkpoints.latest(lambda state: check_state(self.model, state))
            except OSError as refused:
                error = refused
        found, error = here.broadcast((found, error), "the checkpoint")
        if error is not None:
            raise error
        return found or (None, None)

    def _restore(self, state: dict[str, Any]) -> None:
        with self.model._pydt_turn.taken():
            restore_training(self.model, self._all(), state)
        # what callbacks do at the beginning of the epoch has been done before the checkpoint
        position = self.model._pydt_position
        self._state = state if position.steps or position.results is not None else None

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._last_batch = -1
        if self._state is not None:
            with self.model._pydt_turn.taken():
                restore_training(self.model, self._all(), self._state, position=False)
            self._state = None

    # --- writing ---------------------------------------------------------------------------------------------------
    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._batches += batch - self._last_batch
        self._last_batch = batch
        due = _is_count(self.save_freq) and self._batches >= int(self.save_freq)
        if due:
            self._batches = 0
        self._write(due, logs)

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if self._fitting:
            self._write(False, None)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        # an end that any process has asked for is one that the checkpoint tells of
        self.model.stop_training = replica.current().any(bool(self.model.stop_training), "stop_training of all ranks")
        self._write(self.save_freq == "epoch", logs)

    def _write(self, due: bool, logs: Logs | None) -> None:
        """Writes a checkpoint where one is due, or where a signal asks for the end, which then comes."""
        received = self._interrupts.received is not None
        if due or received:
            replica.current().settle()
        if (due or received) and replica.current().is_main:
            loss = (logs or {}).get("loss", 0.0)
            if np.isfinite(loss):
                self._write_here(received)
            else:
                warnings.warn(f"BackupAndRestore: nothing is written: the loss is {loss}", UserWarning, stacklevel=2)
        if received:
            replica.current().meet("rank 0 to have written the checkpoint")
            self._interrupts.end()

    def step_undone(self) -> None:
        if self.save_freq != "epoch" or self.model._pydt_position.steps:  # else the last one is of this moment
            self._write_here(True)

    def _write_here(self, told: bool) -> None:
        position = self.model._pydt_position
        finished = bool(self.model.stop_training) and not position.steps
        with training_goes_on(f"BackupAndRestore, {position}"):
            with self.model._pydt_turn.taken():
                path = self.checkpoints.write(training_state(self.model, self._all(), finished))
            if told:
                print(f"checkpoint: {path}", file=sys.stderr, flush=True)

    def _all(self) -> list[Callback]:
        return self.model._pydt_position.callbacks

    # --- the end ---------------------------------------------------------------------------------------------------
    def on_train_end(self, logs: Logs | None = None) -> None:
        replica.current().share_signals("what ends training")  # after the last step nobody else asks
        if self._interrupts.received is not None:
            self._interrupts.end()
        if self.delete_checkpoint and replica.current().is_main:
            self.checkpoints.delete()

    def release(self) -> None:
        self._interrupts.release()
        self._fitting, self._state = False, None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
