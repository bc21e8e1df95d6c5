"""Figures that were measured on this machine, kept by name in a JSON file of `own_cache()`."""

from __future__ import annotations

import json
import reprlib
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydtconv.files.reading import read_json
from pydtconv.files.whole_file import write_alone
from pydtconv.support.machine import own_cache

VERSION = 1
#: names that a file keeps; the oldest go first
KEPT = 20_000


class KeptFigures:
    """A table from names to numbers.  file: its name in the folder.  what: for messages and the head of the file."""

    def __init__(self, file: str, what: str) -> None:
        self.file = file
        self.what = what
        self._read: tuple[Path, dict[str, float]] | None = None
        self._changes = 0

    @property
    def path(self) -> Path:
        return own_cache() / self.file

    def all(self) -> Mapping[str, float]:
        """The whole table, read once in a process; empty, with a warning, where the file is torn or another's."""
        if self._read is None or self._read[0] != self.path:
            self._read = (self.path, self._load())
            self._changes += 1
        return self._read[1]

    def changes(self) -> int:
        """A number that is another one whenever the table is: for what is remembered of it.

        Asked often, so it does not look whether the folder is still the same.
        """
        if self._read is None:
            self.all()
        return self._changes

    def forget(self) -> None:
        """Reads the file anew when it is asked next."""
        self._read = None

    def add(self, found: Mapping[str, float]) -> None:
        """Puts figures into the table and the file; with a warning where that cannot be written."""
        self._read = None
        table = {**{name: value for name, value in self.all().items() if name not in found}, **found}
        table = dict([*table.items()][-KEPT:])
        self._read = (self.path, table)
        self._changes += 1
        contents = {"format": self.what, "version": VERSION, "figures": table}
        try:
            write_alone(self.path, lambda file: file.write(json.dumps(contents, indent=0).encode()))
        except OSError as error:
            warnings.warn(f"{self.what} are not kept: {error}", RuntimeWarning, stacklevel=2)

    def _load(self) -> dict[str, float]:
        try:
            return _figures(read_json(self.path, self.what), self.what)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            warnings.warn(f"{self.path} is ignored: {error}", RuntimeWarning, stacklevel=3)
            return {}


def _figures(contents: Any, what: str) -> dict[str, float]:
    """The figures of a file's contents.  Raises ValueError where they are another file's, or no numbers."""
    head = {"format": what, "version": VERSION}
    if not isinstance(contents, dict) or {name: contents.get(name) for name in head} != head:
        raise ValueError(f"expected {what!r}, version {VERSION}")
    figures = contents.get("figures")
    if not isinstance(figures, dict):
        raise ValueError(f"figures: expected an object of names and numbers, got {type(figures).__name__}")
    for name, value in figures.items():
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ValueError(f"{name}: expected a finite number, got {reprlib.repr(value)}")
    return {name: float(value) for name, value in figures.items()}
