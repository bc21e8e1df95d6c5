"""Batches of the image files that a table names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.preprocessing.iterators import CLASS_MODES, SUFFIXES, FileIterator, Reading, Saving, split_of


class DataFrameIterator(FileIterator):
    """Batches of the files that a table names."""

    def __init__(
        self,
        generator: Any,
        dataframe: Any,
        directory: Any,
        columns: tuple[str, Any, str | None],
        reading: Reading,
        classes: Sequence[str] | None,
        class_mode: str | None,
        batch_size: int,
        shuffle: bool,
        seed: int | None,
        saving: Saving,
        subset: str | None,
        validate_filenames: bool,
    ) -> None:
        modes = (*CLASS_MODES, "raw", "multi_output")
        if class_mode not in modes:
            raise ValueError(f"class_mode: expected one of {', '.join(map(str, modes))}, got {class_mode!r}")
        self._reads(generator, reading)
        x_col, y_col, weight_col = columns
        self.class_mode, self.class_indices = class_mode, {}
        names = _of_types(_column(dataframe, x_col), x_col, (str,))
        paths = [os.path.join(directory or "", name) for name in names]
        kept = list(range(len(paths)))
        if validate_filenames:
            kept = [i for i in kept if paths[i].lower().endswith(SUFFIXES) and os.path.isfile(paths[i])]
            if len(kept) < len(paths):
                print(f"Left out {len(paths) - len(kept)} files that are not there or are no images.")
        labelled = class_mode in ("categorical", "binary", "sparse")
        labels: dict[int, list[str]] = {}
        if labelled:
            types = (str, list, tuple) if class_mode == "categorical" else (str,)
            column = _column(dataframe, y_col)
            given = _of_types([column[i] for i in kept], y_col, types, kept)
            for i, label in zip(kept, given, strict=True):
                labels[i] = _of_types(list(label), y_col, (str,)) if isinstance(label, (list, tuple)) else [label]
            known = (
                list(dict.fromkeys(classes)) if classes else sorted({one for each in labels.values() for one in each})
            )
            if class_mode == "binary" and len(known) != 2:
                raise ValueError(f"class_mode='binary': expected two classes in {y_col!r}, got {len(known)}: {known}")
            self.class_indices = {name: number for number, name in enumerate(known)}
            labels = {i: [one for one in each if one in self.class_indices] for i, each in labels.items()}
            kept = [i for i in kept if labels[i]]
        if subset is not None:
            at = split_of(generator, subset, len(kept))
            kept = kept[:at] if subset == "validation" else kept[at:]
        self.filenames, self.filepaths = [names[i] for i in kept], [paths[i] for i in kept]
        if labelled:
            numbers = [[self.class_indices[one] for one in labels[i]] for i in kept]
            self.classes = [each[0] if len(each) == 1 else each for each in numbers]
        elif class_mode == "multi_output":
            if isinstance(y_col, str):
                raise TypeError(f"class_mode='multi_output': y_col: expected a list of columns, got {y_col!r}")
            self.classes = [_values(dataframe, name, kept) for name in y_col]
        elif class_mode == "raw":
            several = [_values(dataframe, name, kept) for name in ([y_col] if isinstance(y_col, str) else y_col)]
            if len({each.dtype.kind == "U" for each in several}) > 1:
                raise TypeError(
                    f"class_mode='raw': columns {list(y_col)}: expected all numbers or all strings, got both"
                )
            self.classes = several[0] if isinstance(y_col, str) else np.stack(several, -1)
        if weight_col is not None:
            self.weights = _values(dataframe, weight_col, kept)
            if self.weights.dtype.kind not in "biuf" or not np.isfinite(self.weights).all():
                raise TypeError(f"column {weight_col!r}: expected finite numbers, got {list(self.weights)!r:.100}")
        told = f" belonging to {self.num_classes} classes" if labelled else ""
        print(f"Found {len(kept)} {'validated ' if validate_filenames else ''}image filenames{told}.")
        super().__init__(generator, len(kept), batch_size, shuffle, seed, saving)


def _column(table: Any, name: str) -> list[Any]:
    try:
        return list(table[name])
    except KeyError:
        raise ValueError(f"flow_from_dataframe: expected a column {name!r}, got {list(table)}") from None


def _of_types(values: list[Any], name: str, types: tuple[type, ...], rows: Sequence[int] | None = None) -> list[Any]:
    """The values of a column.  Raises TypeError that names the first of another type, such as a missing one."""
    for place, value in enumerate(values):
        if not isinstance(value, types):
            expected = " or ".join(each.__name__ for each in types)
            row = place if rows is None else rows[place]
            raise TypeError(f"column {name!r}: expected {expected}, got {value!r} in row {row}")
    return values


def _values(table: Any, name: str, rows: list[int]) -> np.ndarray:
    """Some rows of a column.  Raises TypeError that names the column where they are no numbers, nor all strings."""
    column = _column(table, name)
    chosen = [column[i] for i in rows]
    if any(isinstance(value, str) for value in chosen):
        _of_types(chosen, name, (str,), rows)
    try:
        values = np.array(chosen)
    except ValueError as error:
        raise TypeError(f"column {name!r}: expected values of one shape: {error}") from None
    if values.dtype.kind not in "biufU":
        row, odd = next(pair for pair in zip(rows, chosen, strict=True) if np.asarray(pair[1]).dtype.kind not in "biuf")
        raise TypeError(f"column {name!r}: expected numbers or strings, got {odd!r} in row {row}")
    return values
