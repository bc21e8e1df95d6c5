"""Records of training: in memory, as CSV."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.files.growing_file import GrowingFile
from pydtconv.files.whole_file import before_training, check_writable, training_goes_on
from pydtconv.support import notebook

#: of training and of validation
COLORS = ("#3a7ca5", "#e07a5f")


class History(Callback):
    """`history`: the results of each epoch by name; `epoch`: the epochs' numbers.  fit adds one and returns it."""

    state_names = ("history", "epoch")

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.history = {}
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)

    def __repr__(self) -> str:
        last = (f"{name} {values[-1]:.4g}" for name, values in self._pydt_curves().items())
        return f"<History: {len(self.epoch)} epochs{'; ' if self.epoch else ''}{', '.join(last)}>"

    def _repr_html_(self) -> str:
        """A picture of each quantity over the epochs, and a table of the first, the last, the least and the most."""
        curves = self._pydt_curves()
        pictures = []
        for name in (name for name in curves if not name.startswith("val_")):
            both = zip((name, f"val_{name}"), COLORS, strict=True)
            pictures.append(notebook.curves({each: (color, curves[each]) for each, color in both if each in curves}))
        rows = {
            name: f"{values[0]:.4g} to {values[-1]:.4g}, from {min(values):.4g} to {max(values):.4g}"
            for name, values in curves.items()
        }
        return f"<b>{len(self.epoch)} epochs</b>{''.join(pictures)}{notebook.table(rows)}"

    def _pydt_curves(self) -> dict[str, list[float]]:
        """The quantities that are a number in each epoch."""
        numbers = (int, float, np.number)
        return {k: v for k, v in self.history.items() if v and all(isinstance(each, numbers) for each in v)}


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


class CSVLogger(Callback):
    """Writes the results of each epoch as a row of a file; append goes on with a file that is there.

    A folder that cannot be written to is an OSError before training begins.  Where the disk is full later, a warning
    says so, training goes on, and the rows are written as soon as there is room.
    A link is followed, as by `open`.
    """

    main_only = True

    def __init__(self, filename: str | Path, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename = Path(filename)
        self.separator = separator
        self.append = append
        self._keys: list[str] | None = None
        self._left_out: list[str] = []
        self._header = True
        self._file: GrowingFile | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        if not (self.filename.is_file() and os.access(self.filename, os.W_OK)):
            with before_training("CSVLogger"):
                check_writable(self.filename)
        self._keys, self._left_out = None, []
        self._header, self._unended = True, False
        if self.append and self.filename.exists() and self.filename.stat().st_size:
            with self.filename.open(newline="") as file:
                row = next(csv.reader(file, delimiter=self.separator), None)
            if row and row[0] == "epoch":
                self._header, self._keys = False, row[1:]

    def get_state(self) -> dict[str, Any]:
        file = self._file
        rows = {"size": None, "pending": ""} if file is None else {"size": file.size, "pending": file.pending.decode()}
        return {"keys": self._keys, "header": self._header, **rows}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Goes on behind the rows that were there; those of epochs that are trained again are taken away."""
        size = state["size"]
        if size is None or (size and (not self.filename.exists() or self.filename.stat().st_size < size)):
            return
        self._close()
        self._keys, self._header = state["keys"], state["header"]
        self._file = GrowingFile(self.filename, size)
        self._file.pending = state.get("pending", "").encode()

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        logs = logs or {}
        if self._keys is None:
            self._keys = sorted(logs)
            # epochs without validation may come first: the columns of the others are kept free
            if self.params.get("validation") and not any(key.startswith("val_") for key in self._keys):
                self._keys += [f"val_{key}" for key in self._keys]
        if self._file is None:
            there = self.append and self.filename.exists()
            self._unended = bool(there and self.filename.stat().st_size and not _ends_a_line(self.filename))
            self._file = GrowingFile(self.filename, self.filename.stat().st_size if there else 0)
        rows = io.StringIO()
        if self._unended:
            rows.write("\n")
            self._unended = False
        writer = csv.writer(rows, delimiter=self.separator, lineterminator="\n")
        if self._header:
            writer.writerow(["epoch", *self._keys])
            self._header = False
        for name in [name for name in logs if name not in (*self._keys, *self._left_out)]:
            self._left_out.append(name)
            warnings.warn(
                f"CSVLogger: {self.filename}: expected a column for {name!r}, got {', '.join(self._keys) or 'none'}: "
                "it is not written",
                UserWarning,
                stacklevel=2,
            )
        writer.writerow([epoch, *(_cell(logs.get(key, "NA")) for key in self._keys)])
        with training_goes_on(f"CSVLogger, epoch {epoch + 1}"):
            self._file.add(rows.getvalue().encode())

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._close()

    def release(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _cell(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f'"[{", ".join(map(str, value))}]"'
    return value
