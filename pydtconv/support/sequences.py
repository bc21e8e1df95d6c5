"""Rows of numbers as arrays and batches: pad_sequences, timeseries_dataset_from_array; triples of fit's data."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

import numpy as np

from pydtconv.dtypes import name_of
from pydtconv.support.dataset import PyDataset
from pydtconv.support.random import next_seed


def pad_sequences(
    sequences: Items[Any],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray:
    """Rows of one length (n, maxlen, ...): filled up with a value, or cut, at the beginning ("pre") or end ("post")."""
    for name, side in (("padding", padding), ("truncating", truncating)):
        if side not in ("pre", "post"):
            raise ValueError(f"pad_sequences: {name}: expected 'pre' or 'post', got {side!r}")
    rows = [np.asarray(row) for row in sequences]
    length = max((len(row) for row in rows), default=0) if maxlen is None else maxlen
    inner = next((row.shape[1:] for row in rows if len(row)), ())
    result = np.full((len(rows), length, *inner), value, dtype)
    for target, row in zip(result, rows, strict=True):
        if len(row) and row.shape[1:] != inner:
            raise ValueError(f"pad_sequences: expected rows of shape {inner} each, got {row.shape[1:]}")
        kept = row[-length:] if truncating == "pre" and length else row[:length]
        if len(kept):
            target[slice(len(kept)) if padding == "post" else slice(-len(kept), None)] = kept
    return result


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """What fit's data is: x alone, (x, y) or (x, y, sample_weight)."""
    if y is None:
        return (x,) if isinstance(x, (tuple, list)) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) of what fit's data is; None for what is not there."""
    data = tuple(data) if isinstance(data, list) else data
    parts = data if isinstance(data, tuple) else (data,)
    if len(parts) > 3:
        raise ValueError(f"unpack_x_y_sample_weight: expected up to 3 parts, got {len(parts)}")
    return (*parts, *[None] * (3 - len(parts)))


def standardize_dtype(dtype: Any) -> str:
    """The name of a dtype; None is floatx, "int" int64 as on PyTorch, "float" float32."""
    from pydtconv import config

    if dtype is None:
        return config.floatx()
    return name_of("float32" if isinstance(dtype, str) and dtype == "float" else dtype)


class _Windows(PyDataset):
    """Windows of a series by their first elements."""

    def __init__(self, data: Any, targets: Any, starts: np.ndarray, places: np.ndarray, batch_size: int | None) -> None:
        super().__init__()
        self.data, self.targets, self.starts, self.places, self.batch_size = data, targets, starts, places, batch_size

    def __len__(self) -> int:
        return len(self.starts) if self.batch_size is None else -(-len(self.starts) // self.batch_size)

    def __getitem__(self, index: int) -> Any:
        if self.batch_size is None:
            start = self.starts[index]
            x = self.data[start + self.places]
            return x if self.targets is None else (x, self.targets[start])
        starts = self.starts[index * self.batch_size : (index + 1) * self.batch_size]
        x = self.data[starts[:, None] + self.places]
        return x if self.targets is None else (x, self.targets[starts])


def timeseries_dataset_from_array(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
    format: str = "tf",
) -> PyDataset:
    """Windows of sequence_length elements, sampling_rate apart, that begin sequence_stride apart, with targets[begin].

    Batches of (n, sequence_length, ...), and targets where these are not None; batch_size None: single windows.
    format is Keras's: the result is a PyDataset with either.
    """
    for name, value in (("sequence_length", sequence_length), ("sequence_stride", sequence_stride)):
        if value < 1:
            raise ValueError(f"timeseries_dataset_from_array: {name}: expected 1 or more, got {value}")
    if format not in ("tf", "grain"):
        raise ValueError(f"timeseries_dataset_from_array: format: expected 'tf' or 'grain', got {format!r}")
    if sampling_rate < 1:
        raise ValueError(f"timeseries_dataset_from_array: sampling_rate: expected 1 or more, got {sampling_rate}")
    data = np.asarray(data)[start_index or 0 : end_index]
    targets = None if targets is None else np.asarray(targets)[start_index or 0 :]
    count = len(data) - (sequence_length - 1) * sampling_rate
    if targets is not None:
        count = min(count, len(targets))
    starts = np.arange(0, max(count, 0), sequence_stride)
    if not len(starts):
        raise ValueError(
            f"timeseries_dataset_from_array: {len(data)} elements hold no window of {sequence_length} that are "
            f"{sampling_rate} apart"
        )
    if shuffle:
        starts = np.random.default_rng(next_seed() if seed is None else seed).permutation(starts)
    return _Windows(data, targets, starts, np.arange(sequence_length) * sampling_rate, batch_size)
