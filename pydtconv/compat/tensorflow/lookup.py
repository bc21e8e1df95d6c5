"""`tf.lookup`: tables from keys to values."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import Array, array, in_bytes, text_of
from pydtconv.compat.tensorflow.dtypes import DType, as_dtype
from pydtconv.layers.preprocessing.categories import looked_up, remainders
from pydtconv.support.fingerprints import fingerprint64
from pydtconv.support.strings import without_strings


class TextFileIndex:
    """What of a line is a key or a value: the whole line, its number, or the field of a number from 0 on."""

    WHOLE_LINE, LINE_NUMBER = -2, -1


class KeyValueTensorInitializer:
    """Keys and values of a table, two vectors of one length."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self.keys, self.values = _vector(keys, key_dtype), _vector(values, value_dtype)
        if self.keys.shape != self.values.shape:
            raise ValueError(
                f"KeyValueTensorInitializer: expected as many keys as values, got {len(self.keys)} and "
                f"{len(self.values)}"
            )


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values out of the lines of a file."""

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None, value_index_offset: int = 0,
    ) -> None:  # fmt: skip
        lines = Path(text_of(filename)).read_bytes().splitlines()[:vocab_size]

        def column(index: int, dtype: Any, offset: int) -> Any:
            if index == TextFileIndex.LINE_NUMBER:
                return array(np.arange(len(lines)) + offset, dtype)
            whole = index == TextFileIndex.WHOLE_LINE
            texts = [line if whole else line.split(delimiter.encode())[index] for line in lines]
            return in_bytes(texts) if as_dtype(dtype) == "string" else array([float(each) for each in texts], dtype)

        keys = column(key_index, key_dtype, 0)
        super().__init__(keys, column(value_index, value_dtype, value_index_offset))


def _vector(values: Any, dtype: Any) -> Array:
    found = array(values, dtype)
    if dtype is None and found.dtype == "int32":  # as tensors of Python's integers are for tables
        found = array(found, "int32")
    return found.reshape(-1)


class StaticHashTable:
    """The value of each key, and default_value of keys that the table has not."""

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None, experimental_is_anonymous: bool = False
    ) -> None:
        self._initializer = initializer
        self._values: dict[Any, Any] = {}
        for key, value in zip(_plain(initializer.keys), _plain(initializer.values), strict=True):
            if self._values.setdefault(key, value) != value:
                raise ValueError(
                    f"StaticHashTable: expected one value of key {key!r}, got {self._values[key]} and {value}"
                )
        self.default_value = array(default_value, self.value_dtype)

    @property
    def key_dtype(self) -> DType:
        return self._initializer.keys.dtype

    @property
    def value_dtype(self) -> DType:
        return self._initializer.values.dtype

    def size(self, name: str | None = None) -> Array:
        """The number of keys."""
        return array(len(self._values), "int64")

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys of any shape."""
        if hasattr(keys, "apply_op"):
            return self._of_tensor(keys)
        places = _keys(keys, self.key_dtype)
        usual = self.default_value.numpy()
        found = [self._values.get(key, usual) for key in _plain(places)]
        return _joined(found, self.value_dtype).reshape(places.shape)

    def _of_tensor(self, keys: Any) -> Any:
        """The same of what is traced, where strings are their fingerprints."""
        if self.value_dtype == "string":
            raise NotImplementedError("lookup: expected values of numbers, where keys are traced, got strings")
        known = np.asarray(list(self._values), object if self.key_dtype == "string" else "int64")
        values = np.asarray(list(self._values.values()), self.value_dtype.as_numpy_dtype)
        return looked_up(ops.cast(keys, "int64"), without_strings(known), values, self.default_value.numpy())

    __getitem__ = lookup

    def export(self, name: str | None = None) -> tuple[Array, Array]:
        """All keys, and their values."""
        return _joined(list(self._values), self.key_dtype), _joined(list(self._values.values()), self.value_dtype)


class StaticVocabularyTable:
    """The numbers of keys; keys that the table has not are spread over num_oov_buckets further numbers."""

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        if int(num_oov_buckets) < 1:
            raise ValueError(f"StaticVocabularyTable: num_oov_buckets: expected 1 or more, got {num_oov_buckets}")
        self._buckets = int(num_oov_buckets)
        self._table = None if initializer is None else StaticHashTable(initializer, -1)
        kind = "string" if self._table is None else self._table.key_dtype
        self.key_dtype, self.value_dtype = as_dtype(lookup_key_dtype or kind), as_dtype("int64")
        if self._table is not None and self._table.value_dtype != "int64":
            raise TypeError(f"StaticVocabularyTable: expected values of int64, got {self._table.value_dtype}")

    def size(self, name: str | None = None) -> Array:
        """The number of keys and of further numbers."""
        known = 0 if self._table is None else int(self._table.size())
        return array(known + self._buckets, "int64")

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of keys of any shape."""
        if hasattr(keys, "apply_op"):
            return self._of_tensor(keys)
        places = _keys(keys, self.key_dtype)
        first = int(self.size()) - self._buckets
        known = [-1] * places.size if self._table is None else self._table.lookup(places).reshape(-1).tolist()
        texts = [key if isinstance(key, bytes) else str(key).encode() for key in _plain(places)]
        found = [
            n if n >= 0 else first + fingerprint64(key) % self._buckets for n, key in zip(known, texts, strict=True)
        ]
        return array(np.asarray(found, "int64")).reshape(places.shape)

    def _of_tensor(self, keys: Any) -> Any:
        """The same of what is traced, where strings are their fingerprints."""
        if self.key_dtype != "string" and self._buckets > 1:
            raise NotImplementedError(
                f"lookup: num_oov_buckets: expected 1 for integers that are traced, got {self._buckets}"
            )
        first = np.int64(int(self.size()) - self._buckets)
        other = ops.add(remainders(ops.cast(keys, "int64"), self._buckets), first)
        if self._table is None:
            return other
        found = self._table.lookup(keys)
        return ops.where(ops.less(found, 0), other, found)

    __getitem__ = lookup


def _plain(values: Any) -> Iterable[Any]:
    return np.asarray(values).reshape(-1).tolist()


def _keys(keys: Any, dtype: DType) -> Array:
    found = array(keys, dtype) if not isinstance(keys, Array) else keys
    if found.dtype != dtype:
        raise TypeError(f"lookup: expected keys of {dtype.name}, got {found.dtype.name}")
    return found


def _joined(values: list[Any], dtype: DType) -> Array:
    return in_bytes(values).reshape(-1) if dtype == "string" else array(np.asarray(values, dtype.as_numpy_dtype))


class _Changing(StaticHashTable):
    """A table whose values change."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str = "", **kwargs: Any) -> None:
        super().__init__(KeyValueTensorInitializer([], [], key_dtype, value_dtype), default_value)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Sets the values of keys."""
        self._values.update(
            zip(_plain(_keys(keys, self.key_dtype)), _plain(array(values, self.value_dtype)), strict=True)
        )

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Removes keys, where they are there."""
        for key in _plain(_keys(keys, self.key_dtype)):
            self._values.pop(key, None)


def table() -> dict[str, Any]:
    """The names of `tf.lookup`."""
    own = KeyValueTensorInitializer, TextFileIndex, TextFileInitializer, StaticHashTable, StaticVocabularyTable
    return {each.__name__: each for each in own}


def experimental_table() -> dict[str, Any]:
    """The names of `tf.lookup.experimental`."""
    return {"MutableHashTable": _Changing}
