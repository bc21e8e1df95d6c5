"""The list of callbacks that fit, evaluate and predict call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydtconv import replica
from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.callbacks.history import History
from pydtconv.callbacks.progbar import ProgbarLogger


class CallbackList(Callback):
    """Calls several callbacks in order; for a method that none of them defines it does nothing."""

    def __init__(
        self,
        callbacks: Any = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
        self.callbacks: list[Callback] = _flat(callbacks)
        if add_progbar and not any(isinstance(callback, ProgbarLogger) for callback in self.callbacks):
            self.callbacks.append(ProgbarLogger())
        history = next((callback for callback in self.callbacks if isinstance(callback, History)), None)
        if add_history and history is None:
            history = History()
            self.callbacks.append(history)
        self.callbacks.sort(key=lambda callback: callback.runs_last)
        self._history = history
        self._callers: dict[str, list[Any]] = {}
        self.set_params(params)
        if model is not None:
            self.set_model(model)

    @classmethod
    def of(cls, callbacks: Any, **arguments: Any) -> CallbackList:
        """The callbacks as a list of this kind; one that is passed in is taken as it is."""
        return callbacks if isinstance(callbacks, cls) else cls(callbacks, **arguments)

    def append(self, callback: Callback) -> None:
        self.callbacks.append(callback)
        self.callbacks.sort(key=lambda callback: callback.runs_last)
        self._callers = {}

    def set_params(self, params: dict[str, Any]) -> None:
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        self._model = model
        if self._history is not None:
            object.__setattr__(model, "history", self._history)
        for callback in self.callbacks:
            callback.set_model(model)

    def calls_others(self, *names: str) -> bool:
        """Whether one of these methods calls a function that is not this package's."""
        return any(_is_others(callback, *names) for callback in self.callbacks)

    @property
    def read_state(self) -> bool:
        """Whether a callback may read the optimizer's state at the end of an epoch."""
        names = ("on_epoch_begin", "on_epoch_end", "on_test_begin", "on_test_end")
        told = [(callback, callback.reads_state) for callback in self.callbacks]
        return any(_is_others(callback, *names) if reads is None else reads for callback, reads in told)

    def _call(self, name: str, *arguments: Any) -> None:
        if name not in self._callers:
            here = replica.current()
            older = name.replace("_train", "") if name.startswith("on_train_batch") else name
            self._callers[name] = [
                getattr(callback, name)
                for callback in self.callbacks
                if (here.is_main or not callback.main_only) and (_defines(callback, name) or _defines(callback, older))
            ]
        for method in self._callers[name]:
            method(*arguments)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._call("on_epoch_begin", epoch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._call("on_epoch_end", epoch, {} if logs is None else logs)

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._call("on_train_batch_begin", batch, logs or {})

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._call("on_train_batch_end", batch, {} if logs is None else logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._call("on_test_batch_begin", batch, logs or {})

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._call("on_test_batch_end", batch, {} if logs is None else logs)

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._call("on_predict_batch_begin", batch, logs or {})

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._call("on_predict_batch_end", batch, {} if logs is None else logs)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._call("on_train_begin", logs or {})

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._call("on_train_end", {} if logs is None else logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._call("on_test_begin", logs or {})

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._call("on_test_end", {} if logs is None else logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._call("on_predict_begin", logs or {})

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._call("on_predict_end", {} if logs is None else logs)

    def step_undone(self) -> None:
        self._call("step_undone")

    def settle(self) -> None:
        self._call("settle")

    def release(self) -> None:
        self._call("release")


def _flat(callbacks: Any) -> list[Callback]:
    if callbacks is None:
        return []
    if isinstance(callbacks, Callback):
        return [callbacks]
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks: expected a list of callbacks, got {callbacks!r}")
    found = [one for callback in callbacks for one in (_flat(callback) if isinstance(callback, list) else [callback])]
    for callback in found:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks: expected objects of Callback, got {callback!r}")
    return found


def _defines(callback: Callback, name: str) -> bool:
    """Whether a callback does anything in this method: its class defines it, or it is set on the object."""
    return name in vars(callback) or getattr(type(callback), name, None) is not getattr(Callback, name)


def _is_others(callback: Callback, *names: str) -> bool:
    """Whether one of its methods calls a function that is not this package's."""
    names = (*names, *(name.replace("_train", "") for name in names if name.startswith("on_train_batch")))
    found = [getattr(callback, name) for name in names]
    return any(not str(getattr(function, "__module__", "")).startswith("pydtconv.") for function in found)
