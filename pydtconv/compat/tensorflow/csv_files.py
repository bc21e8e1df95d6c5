"""Data sets out of CSV files."""

from __future__ import annotations

import csv
import functools
import gzip
import itertools
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.data import Dataset
from pydtconv.compat.tensorflow.decoding import column_of, value_of
from pydtconv.compat.tensorflow.records import compression_type_of
from pydtconv.compat.tensorflow.sources import paths_of
from pydtconv.compat.tensorflow.specs import TensorSpec


def _rows(path: str, delimiter: str, quotes: bool, header: bool, compression: Any) -> Iterator[list[str]]:
    """The fields of each line; empty lines have none."""
    compressed = compression_type_of(compression) == "GZIP"
    with (gzip.open if compressed else open)(path, "rt", newline="", encoding="utf-8") as file:
        rows = csv.reader(file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
        yield from (row for row in itertools.islice(rows, 1 if header else 0, None) if row)


def _column(values: list[str], na_value: str) -> tuple[str, Any]:
    """The dtype that a column's values have, as TensorFlow guesses it, and what stands in empty fields."""
    there = [each for each in values if each not in ("", na_value)]
    kinds = [_kind(each) for each in there]
    order = ("int32", "int64", "float32", "float64", "string")
    found = max(kinds, key=order.index, default="int32")
    return found, b"" if found == "string" else 0


def _kind(text: str) -> str:
    try:
        return "int32" if -(2**31) <= int(text) < 2**31 else "int64" if -(2**63) <= int(text) < 2**63 else "string"
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return "string"
    limit = float(np.finfo("float32").max)
    return "float32" if -limit <= number <= limit or not np.isfinite(number) else "float64"


def _chosen(every: list[str], select: Any) -> list[str]:
    """The names of the columns that are read, in the order of the file."""
    if len(set(every)) != len(every):
        raise ValueError(f"make_csv_dataset: expected column names that differ, got {every}")
    wanted = every if select is None else [each if isinstance(each, str) else every[int(each)] for each in select]
    if unknown := [each for each in wanted if each not in every]:
        raise ValueError(f"make_csv_dataset: select_columns: expected some of {every}, got {unknown}")
    return [each for each in every if each in wanted]


class CsvDataset(Dataset):
    """The lines of CSV files, a tuple of the columns' values each.

    record_defaults: for each column that is read the value of empty fields, or a dtype, which refuses those.
    """

    def __init__(
        self, filenames: Any, record_defaults: Any, compression_type: Any = None, buffer_size: Any = None,
        header: bool = False, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
        select_cols: Any = None, exclude_cols: Any = None,
    ) -> None:  # fmt: skip
        kinds = [column_of(each) for each in record_defaults]
        left_out = {int(each) for each in exclude_cols or ()}

        def element(path: str, number: int, row: list[str]) -> tuple[Any, ...]:
            every = [place for place in range(len(row)) if place not in left_out]
            places = every if select_cols is None else [int(each) for each in select_cols]
            if len(places) != len(kinds) or max(places) >= len(row):
                raise ValueError(f"{path}: expected {len(kinds)} columns in record {number}, got {row}")
            told = f"{path}: record {number}"
            fields = zip(places, kinds, strict=True)
            return tuple(array(value_of(row[i], kind, usual, na_value, told), kind) for i, (kind, usual) in fields)

        def of_file(path: str) -> Iterator[Any]:
            rows = _rows(path, field_delim, use_quote_delim, header, compression_type)
            return itertools.starmap(lambda number, row: element(path, number, row), enumerate(rows))

        super().__init__(
            lambda: itertools.chain.from_iterable(map(of_file, paths_of(filenames))),
            spec=lambda: tuple(TensorSpec((), kind) for kind, _ in kinds),
        )


def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Any = None, column_defaults: Any = None, label_name: Any = None,
    select_columns: Any = None, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
    header: bool = True, num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None, prefetch_buffer_size: int | None = None, num_parallel_reads: int | None = None,
    sloppy: bool = False, num_rows_for_inference: int | None = 100, compression_type: Any = None,
    ignore_errors: bool = False, encoding: str = "utf-8",
) -> Any:  # fmt: skip
    """Batches of the lines of CSV files: a dict of columns, and beside it the column of labels where that is named.

    The dtypes of columns follow from column_defaults, else from the first lines.  num_epochs: None is without end.
    """
    paths = paths_of(Dataset.list_files(file_pattern, shuffle=False))

    def rows(path: str, skips: bool = header) -> Iterator[list[str]]:
        return _rows(path, field_delim, use_quote_delim, skips, compression_type)

    if column_names is None and not header:
        raise ValueError("make_csv_dataset: expected column_names where header is False")
    every = list(next(rows(paths[0], False), ())) if column_names is None else [str(each) for each in column_names]
    chosen = _chosen(every, select_columns)
    if column_defaults is None:
        sample = list(itertools.islice(rows(paths[0]), num_rows_for_inference))
        kinds = [_column([row[every.index(each)] for row in sample], na_value) for each in chosen]
    else:
        kinds = [column_of(each) for each in column_defaults]
        if len(kinds) != len(chosen):
            raise ValueError(f"make_csv_dataset: column_defaults: expected {len(chosen)}, got {len(kinds)}")
    columns = [(each, every.index(each), *kind) for each, kind in zip(chosen, kinds, strict=True)]
    if label_name is not None and label_name not in [name for name, *_ in columns]:
        raise ValueError(f"make_csv_dataset: label_name: expected one of {[c[0] for c in columns]}, got {label_name!r}")

    def element(path: str, row: list[str]) -> Any:
        found: Any = OrderedDict()
        for name, place, kind, default in columns:
            if place >= len(row):
                raise ValueError(f"{path}: expected a field {place} ({name}), got {row}")
            found[name] = array(value_of(row[place], kind, default, na_value, f"{path}: {name}"), kind)
        return found if label_name is None else (found, found.pop(label_name))

    def spec() -> Any:
        found: Any = OrderedDict((name, TensorSpec((), kind)) for name, _, kind, _ in columns)
        return found if label_name is None else (found, found.pop(label_name))

    def of_file(path: str) -> Iterator[Any]:
        return map(functools.partial(element, path), rows(path))

    dataset: Any = Dataset(lambda: itertools.chain.from_iterable(map(of_file, paths)), spec=spec)
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    return dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None).prefetch(1)
