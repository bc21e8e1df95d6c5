"""Callbacks of a few lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.callbacks.monitor import say


class TerminateOnNaN(Callback):
    """Ends training when the loss of a batch is not finite; raise_error does so with a RuntimeError."""

    steers = True

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            if self.raise_error:
                raise RuntimeError(f"batch {batch}: the loss is {loss}; training ends")
            say(True, f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class LambdaCallback(Callback):
    """A callback out of functions, each with the arguments of the method of its name.

    Others, whose names begin with something else than "on_", are attributes.
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        on_train_batch_begin: Callable[..., Any] | None = None,
        on_train_batch_end: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        given = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            "on_train_batch_begin": on_train_batch_begin,
            "on_train_batch_end": on_train_batch_end,
            **kwargs,
        }
        for name, function in given.items():
            if name.startswith("on_") and not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback: unknown argument {name!r}")
            if function is not None:
                setattr(self, name, function)
