"""Data sets out of files: records, lines, parts of equal length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydtconv.compat.tensorflow.arrays import scalar
from pydtconv.compat.tensorflow.data import Dataset
from pydtconv.compat.tensorflow.parsing import parse_example
from pydtconv.compat.tensorflow.records import compression_type_of, opened, records_of
from pydtconv.compat.tensorflow.sources import paths_of
from pydtconv.compat.tensorflow.specs import TensorSpec


class _OfFiles(Dataset):
    """The strings that are read from files, one file after the other."""

    def __init__(self, filenames: Any, read: Callable[[str], Iterator[bytes]]) -> None:
        super().__init__(
            lambda: (scalar(each) for path in paths_of(filenames) for each in read(path)),
            spec=lambda: TensorSpec((), "string"),
        )


class TFRecordDataset(_OfFiles):
    """The records of TFRecord files.  compression_type: "", "GZIP" or "ZLIB"."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        kind = compression_type_of(compression_type)
        super().__init__(filenames, lambda path: records_of(path, kind))


class TextLineDataset(_OfFiles):
    """The lines of files, without what ends them."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        kind = compression_type_of(compression_type)
        super().__init__(filenames, lambda path: _lines(path, kind))


class FixedLengthRecordDataset(_OfFiles):
    """Parts of record_bytes bytes of files, without header_bytes at their beginnings, footer_bytes at their ends."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        kind, outer = compression_type_of(compression_type), (int(header_bytes or 0), int(footer_bytes or 0))
        super().__init__(filenames, lambda path: _parts(path, int(record_bytes), *outer, kind))


def _lines(path: str, compression_type: str) -> Iterator[bytes]:
    reader, file = opened(path, compression_type)
    with file:
        left = b""
        while part := reader.read(1 << 16):
            *whole, left = (left + part).split(b"\n")
            yield from (each.removesuffix(b"\r") for each in whole)
        if left:
            yield left.removesuffix(b"\r")


def _parts(path: str, size: int, header: int, footer: int, compression_type: str) -> Iterator[bytes]:
    reader, file = opened(path, compression_type)
    with file:
        data = reader.read(-1)[header:]
    data = data[: len(data) - footer]
    if len(data) % size:
        raise ValueError(f"{path}: expected records of {size} bytes, got {len(data)} bytes of them")
    yield from (data[i : i + size] for i in range(0, len(data), size))


def make_batched_features_dataset(
    file_pattern: Any, batch_size: int, features: Any, reader: Any = None, label_key: str | None = None,
    reader_args: Any = None, num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None, drop_final_batch: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Batches of parsed examples out of TFRecord files, with the labels beside them where label_key names them."""
    records = (reader or TFRecordDataset)(Dataset.list_files(file_pattern, shuffle=False), *(reader_args or ()))
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    batched = records.repeat(num_epochs).batch(batch_size, drop_final_batch or num_epochs is None)
    parsed = batched.map(lambda texts: parse_example(texts, features))
    if label_key is None:
        return parsed
    return parsed.map(lambda found: ({k: v for k, v in found.items() if k != label_key}, found[label_key]))
