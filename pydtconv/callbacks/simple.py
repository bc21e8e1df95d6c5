"""Callbacks of a few lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv.callbacks.callback import Callback


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
