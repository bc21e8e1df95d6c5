"""Base of callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydtconv.own_names import OwnNames

Logs = dict[str, Any]


class Callback(OwnNames):
    """Called around training.  `self.model` is the model, `self.params` holds verbose, epochs and steps.

    logs: results by name so far; a callback may read them (epochs' logs go on to the next callback as it leaves them).
    """

    #: attributes that change in training, for checkpoints to keep
    state_names: tuple[str, ...] = ()
    #: whether it is called after all others that are not
    runs_last = False
    #: whether only one of several processes that train together calls it: it prints, or writes files of its own
    main_only = False
    #: whether it changes training, so that all processes that train together must have it, with the same settings
    steers = False
    #: whether it may save the model between two steps of training, by itself: not together with other processes
    saves_between_steps = False
    #: whether it may read the optimizer's state, or weights of which each process has some columns, at the end of an
    #: epoch, by itself; None: if it is a user's own
    reads_state: bool | None = None
    params: dict[str, Any] = MappingProxyType({})  # type: ignore[assignment]
    _pydt_model: Any = None

    @property
    def model(self) -> Any:
        """The model that is trained."""
        return self._pydt_model

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params

    def set_model(self, model: Any) -> None:
        self._pydt_model = model

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """The older name of `on_train_batch_begin`, which calls it."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """The older name of `on_train_batch_end`, which calls it."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Before an epoch, counted from 0."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """After an epoch and its validation; logs hold the epoch's results, validation's under "val_" names."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Before a training step, counted from 0 in each epoch."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """After a training step; logs hold the epoch's results so far."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Before a step of evaluate or of validation."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """After a step of evaluate or of validation."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Before a step of predict."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """After a step of predict; logs["outputs"] are its predictions."""

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Before the first epoch of fit."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """After the last epoch of fit; logs are the last epoch's."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Before evaluate or validation."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """After evaluate or validation; logs hold the results."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Before predict."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """After predict."""

    def step_undone(self) -> None:
        """When an error ends fit within a step of which nothing is left: the model is as it was before that step."""

    def settle(self) -> None:
        """When the last epoch of fit is over, before averages that an optimizer keeps take the place of the weights."""

    def release(self) -> None:
        """When a run over data is left, by an exception too: gives back files, signal handlers and the like."""

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the callback, as plain data and arrays: the attributes of `state_names`."""
        return {name: getattr(self, name) for name in self.state_names}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Puts back what `get_state` gave: after `on_train_begin`, and within an epoch after `on_epoch_begin` again."""
        for name in self.state_names:
            setattr(self, name, state[name])
