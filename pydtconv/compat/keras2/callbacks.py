"""Old arguments of callbacks, results under old names, and validation data that callbacks could read."""

from __future__ import annotations

from typing import Any

from pydtconv import callbacks
from pydtconv.callbacks.callback_list import CallbackList
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import Rows, dropped, only, translated
from pydtconv.compat.keras2.logs import Results, filled
from pydtconv.compat.tensorflow.arrays import as_tensor

ROWS: dict[str, Rows] = {
    "TensorBoard": {
        "batch_size": dropped, "write_grads": only(False, True), "embeddings_layer_names": only(None),
        "embeddings_data": only(None),
    },
    "ReduceLROnPlateau": {"epsilon": "min_delta"},
    "ProgbarLogger": {"count_mode": only("steps", "samples"), "stateful_metrics": dropped},
}  # fmt: skip
#: endings that a file of ModelCheckpoint may have in Keras 3
_ENDINGS = {True: (".weights.h5",), False: (".keras", ".h5")}


def _init(rows: Rows) -> Any:
    def wrapper(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **translated(type(self).__name__, rows, kwargs))

    return wrapper


def _checkpoint(original: Any, self: Any, filepath: Any, *args: Any, **kwargs: Any) -> None:
    """Takes `period`, and names of files with any ending."""
    if len(args) == 6 and isinstance(args[5], int):
        raise TypeError(
            f"ModelCheckpoint: its seventh argument, {args[5]}, was period and is save_freq: write it by name"
        )
    period = kwargs.pop("period", 1)
    weights = bool(kwargs.get("save_weights_only", args[3] if len(args) > 3 else False))
    if isinstance(period, bool) or not isinstance(period, int) or period < 1:
        raise ValueError(f"ModelCheckpoint: period: expected a number of epochs of 1 or more, got {period!r}")
    if period > 1:
        noticed.once("period", "ModelCheckpoint: period is an old argument: write save_freq=, a number of batches")
    path = str(filepath)
    known = path.endswith(_ENDINGS[weights])
    original(self, path if known else f"x{_ENDINGS[weights][0]}", *args, **kwargs)
    self.filepath = path  # files.py writes it whatever its ending
    self.period = period
    self.epochs_since_last_save = 0


def _epoch_end(original: Any, self: Any, epoch: int, logs: Any = None) -> None:
    if self.__dict__.get("period", 1) > 1 and self.save_freq == "epoch":
        self.epochs_since_last_save += 1
        if self.epochs_since_last_save < self.period:
            return
        self.epochs_since_last_save = 0
    original(self, epoch, logs)


def _path(original: Any, self: Any, epoch: int, batch: int | None, logs: dict[str, Any]) -> Any:
    return original(self, epoch, batch, filled(self.filepath, logs))


def _with_old_names(original: Any, self: Any, number: int, logs: Any = None) -> None:
    original(self, number, Results({} if logs is None else logs))


def _history(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    original(self, *args, **kwargs)
    self.history = Results(self.history)


def install() -> None:
    """Lets callbacks take their old arguments."""
    for name, rows in ROWS.items():
        patches.around(getattr(callbacks, name), "__init__", _init(rows))
    checkpoint: Any = callbacks.ModelCheckpoint
    patches.around(checkpoint, "__init__", _checkpoint)
    patches.around(checkpoint, "on_epoch_end", _epoch_end)
    patches.around(checkpoint, "_path", _path)
    for name in ("on_epoch_end", "on_train_batch_end", "on_test_batch_end"):
        patches.around(CallbackList, name, _with_old_names)
    for name in ("__init__", "on_train_begin"):
        patches.around(callbacks.History, name, _history)
    patches.put(callbacks.Callback, "validation_data", None)


def show_validation(given: Any, data: Any) -> None:
    """Lets callbacks read the validation data, as arrays."""
    if isinstance(data, (tuple, list)) and given is not None:
        arrays = [each for part in data for each in (part if isinstance(part, (list, tuple)) else [part])]
        for callback in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(callback, callbacks.Callback):
                callback.validation_data = [*map(as_tensor, arrays)]  # type: ignore[attr-defined]
