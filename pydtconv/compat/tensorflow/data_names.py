"""The names of `tf.data` and `tf.data.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv.compat.tensorflow import csv_files, record_files
from pydtconv.compat.tensorflow.data import Dataset
from pydtconv.compat.tensorflow.options import Options, Policies, Settings
from pydtconv.compat.tensorflow.parsing import parse_example
from pydtconv.compat.tensorflow.pipeline import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Elements
from pydtconv.compat.tensorflow.records import TFRecordWriter
from pydtconv.compat.tensorflow.transformations import AUTOTUNE


def table() -> dict[str, Any]:
    """The names of `tf.data`."""
    files = record_files.FixedLengthRecordDataset, record_files.TFRecordDataset, record_files.TextLineDataset
    return {each.__name__: each for each in files} | {
        "AUTOTUNE": AUTOTUNE, "Dataset": Dataset, "INFINITE_CARDINALITY": INFINITE_CARDINALITY, "Iterator": Elements,
        "NumpyIterator": Elements, "Options": Options, "ThreadingOptions": Settings,
        "UNKNOWN_CARDINALITY": UNKNOWN_CARDINALITY,
    }  # fmt: skip


def _applied(method: str) -> Callable[..., Any]:
    """The function whose result `Dataset.apply` takes."""
    return lambda *args, **kwargs: lambda dataset: getattr(dataset, method)(*args, **kwargs)


def _map_and_batch(
    map_func: Any, batch_size: int, num_parallel_batches: Any = None, drop_remainder: bool = False, **kwargs: Any
) -> Any:
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def _shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Any:
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def _parallel_interleave(map_func: Any, cycle_length: int, block_length: int = 1, **kwargs: Any) -> Any:
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def _parse_example_dataset(features: Any, num_parallel_calls: Any = 1, deterministic: Any = None) -> Any:
    return lambda dataset: dataset.map(lambda texts: parse_example(texts, features))


def _to_device(device: str, buffer_size: Any = None, source_device: str = "/cpu:0") -> Any:
    return lambda dataset: dataset


def _at(dataset: Any, index: int) -> Any:
    return dataset.skip(int(index)).take(1).get_single_element()


class _Writer:
    """Writes the strings of a data set to a TFRecord file."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._arguments = filename, compression_type

    def write(self, dataset: Any) -> None:
        with TFRecordWriter(*self._arguments) as writer:
            for record in dataset:
                writer.write(record)


def experimental_table() -> dict[str, Any]:
    """The names of `tf.data.experimental`."""
    applied = (
        "assert_cardinality", "bucket_by_sequence_length", "group_by_window", "ignore_errors", "rejection_resample",
        "scan", "snapshot", "take_while", "unbatch", "unique",
    )  # fmt: skip
    return {name: _applied(name) for name in applied} | {
        "AUTOTUNE": AUTOTUNE,
        "Counter": Dataset.counter,
        "CsvDataset": csv_files.CsvDataset,
        "INFINITE_CARDINALITY": INFINITE_CARDINALITY,
        "RandomDataset": Dataset.random,
        "SHARD_HINT": -1,
        "TFRecordWriter": _Writer,
        "UNKNOWN_CARDINALITY": UNKNOWN_CARDINALITY,
        "at": _at,
        "cardinality": lambda dataset: dataset.cardinality(),
        "choose_from_datasets": Dataset.choose_from_datasets,
        "copy_to_device": _to_device,
        "enable_debug_mode": lambda: None,
        "enumerate_dataset": _applied("enumerate"),
        "from_list": lambda elements, name=None: Dataset.from_tensor_slices(elements),
        "get_single_element": lambda dataset: dataset.get_single_element(),
        "get_structure": lambda dataset_or_iterator: dataset_or_iterator.element_spec,
        "load": Dataset.load,
        "make_batched_features_dataset": record_files.make_batched_features_dataset,
        "make_csv_dataset": csv_files.make_csv_dataset,
        "map_and_batch": _map_and_batch,
        "parallel_interleave": _parallel_interleave,
        "parse_example_dataset": _parse_example_dataset,
        "prefetch_to_device": _to_device,
        "sample_from_datasets": Dataset.sample_from_datasets,
        "save": lambda dataset, path, *args, **kwargs: dataset.save(path, *args, **kwargs),
        "shuffle_and_repeat": _shuffle_and_repeat,
        **dict.fromkeys(("AutoShardPolicy", "AutotuneAlgorithm", "ExternalStatePolicy"), Policies),
        **dict.fromkeys(
            ("AutotuneOptions", "DistributeOptions", "OptimizationOptions", "ServiceOptions", "ThreadingOptions"),
            Settings,
        ),
    }
