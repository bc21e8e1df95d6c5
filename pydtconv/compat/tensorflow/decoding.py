"""`tf.io`: numbers in memory, tensors that were serialized, compressed strings, lines of CSV."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import zlib
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import Array, array, bytes_of, in_bytes, name_of, scalar
from pydtconv.compat.tensorflow.dtypes import DType, as_dtype
from pydtconv.compat.tensorflow.examples import Example
from pydtconv.compat.tensorflow.protobuf import VARINT, field, fields, number_field, signed, varints


def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: Any = None, name: Any = None
) -> Array:
    """The numbers of this dtype that lie in strings, along a further axis; fixed_length: of so many of their bytes."""
    texts, kind = in_bytes(input_bytes), np.dtype(as_dtype(out_type).as_numpy_dtype)
    parts = [bytes(each) for each in texts.view(np.ndarray).reshape(-1)]
    if fixed_length is not None:
        parts = [each[: int(fixed_length)].ljust(int(fixed_length), b"\0") for each in parts]
    if len({len(each) for each in parts}) > 1 or any(len(each) % kind.itemsize for each in parts):
        sizes = [len(each) for each in parts]
        raise ValueError(
            f"decode_raw: expected strings of one length, a multiple of {kind.itemsize} bytes, got {sizes}"
        )
    order = kind.newbyteorder("<" if little_endian else ">")
    rows = [np.frombuffer(each, order).astype(kind) for each in parts]
    found = np.stack(rows) if rows else np.empty((0, 0), kind)
    return array(found.reshape(*texts.shape, found.shape[-1]), as_dtype(out_type))


#: dtypes by the numbers that TensorFlow's messages have for them
_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64",
    10: "bool", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
#: fields of values that are not packed memory: strings, and what a message has of one value
_STRINGS, _CONTENT = 8, 4
_LISTED = {5: "<f4", 6: "<f8"}  # fields of floats; those of integers are varints
_INTEGERS = (7, 10, 11, 16, 17)


def serialize_tensor(tensor: Any, name: str | None = None) -> Array:
    """A tensor as bytes, a `TensorProto`, which `parse_tensor` reads."""
    x = array(tensor)
    number = next((key for key, kind in _DTYPES.items() if x.dtype == kind), None)
    if number is None:
        raise ValueError(f"serialize_tensor: expected one of {', '.join(_DTYPES.values())}, got {x.dtype.name}")
    shape = b"".join(field(2, number_field(1, n) if n else b"") for n in x.shape)
    head = number_field(1, number) + field(2, shape)
    if number == 7:
        return scalar(head + b"".join(field(_STRINGS, each) for each in x.view(np.ndarray).reshape(-1)))
    data = np.ascontiguousarray(x.view(np.ndarray)).tobytes()
    return scalar(head + (field(_CONTENT, data) if data else b""))


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Array:
    """The tensor that `serialize_tensor` wrote.  Raises ValueError for bytes that are none, or of another dtype."""
    shape: list[int] = []
    number, content, values = 0, b"", []
    for place, kind, value in fields(bytes_of(serialized)):
        if place == 1:
            number = value
        elif place == 2:
            extents = [{i: v for i, _, v in fields(part)} for i, _, part in fields(value) if i == 2]
            shape = [signed(each.get(1, 0)) for each in extents]
        elif place == _CONTENT:
            content = value
        elif place == _STRINGS:
            values.append(value)
        elif place in _LISTED:
            values += np.frombuffer(value, _LISTED[place]).tolist()
        elif place in _INTEGERS:
            values += map(signed, [value] if kind == VARINT else varints(value))
    found = _DTYPES.get(number)
    if found is None or as_dtype(out_type) != found:
        raise ValueError(f"parse_tensor: expected a tensor of {name_of(out_type)}, got {found or 'no tensor'}")
    if content:
        return array(np.frombuffer(content, as_dtype(found).as_numpy_dtype).reshape(shape).copy())
    if found == "string":
        return in_bytes(values).reshape(shape)
    size = int(np.prod(shape, dtype=np.int64))
    values = values + values[-1:] * (size - len(values)) if values else [0] * size  # the last value stands for the rest
    return array(np.asarray(values).astype(as_dtype(found).as_numpy_dtype).reshape(shape))


def decode_compressed(bytes: Any, compression_type: Any = "", name: Any = None) -> Array:
    """Strings as they were before they were compressed by "ZLIB" or "GZIP"."""
    kinds: Any = {"": lambda data: data, "ZLIB": zlib.decompress, "GZIP": gzip.decompress}
    if compression_type not in kinds:
        raise ValueError(f"decode_compressed: expected '', 'ZLIB' or 'GZIP', got {compression_type!r}")
    texts = in_bytes(bytes)
    return in_bytes([kinds[compression_type](each) for each in texts.view(np.ndarray).reshape(-1)]).reshape(texts.shape)


def encode_base64(input: Any, pad: bool = False, name: Any = None) -> Array:
    """Strings in the letters of base64 that are safe in addresses."""
    texts = in_bytes(input)
    found = [base64.urlsafe_b64encode(each) for each in texts.view(np.ndarray).reshape(-1)]
    return in_bytes([each if pad else each.rstrip(b"=") for each in found]).reshape(texts.shape)


def decode_base64(input: Any, name: Any = None) -> Array:
    """What `encode_base64` was given."""
    texts = in_bytes(input)
    found = [base64.urlsafe_b64decode(each + b"=" * (-len(each) % 4)) for each in texts.view(np.ndarray).reshape(-1)]
    return in_bytes(found).reshape(texts.shape)


def decode_csv(
    records: Any, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
    select_cols: Any = None, name: Any = None,
) -> list[Any]:  # fmt: skip
    """The columns of lines, a tensor each; record_defaults: for each column a value for empty fields, or its dtype."""
    texts = in_bytes(records)
    lines = [each.decode() for each in texts.view(np.ndarray).reshape(-1)]
    columns = [column_of(each) for each in record_defaults]
    places = list(range(len(columns))) if select_cols is None else [int(i) for i in select_cols]
    quoting: Any = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    found: list[list[Any]] = [[] for _ in columns]
    for number, row in enumerate(csv.reader(lines, delimiter=field_delim, quoting=quoting)):
        if (len(row) != len(columns)) if select_cols is None else (max(places) >= len(row)):
            raise ValueError(f"decode_csv: expected {len(columns)} fields in record {number}, got {len(row)}")
        for column, place, (kind, default) in zip(found, places, columns, strict=True):
            column.append(value_of(row[place], kind, default, na_value, f"field {place} in record {number}"))
    kinds = [kind for kind, _ in columns]
    return [
        array(in_bytes(v) if k == "string" else np.asarray(v, k), k).reshape(texts.shape)
        for v, k in zip(found, kinds, strict=True)
    ]


def column_of(default: Any) -> tuple[str, Any]:
    """The dtype of a column, and what stands in its empty fields; None where they are refused."""
    if isinstance(default, (type, np.dtype, DType)):
        return as_dtype(default).name, None
    values = array(default)
    return values.dtype.name, None if values.size == 0 else values.reshape(-1)[0].numpy()


def value_of(text: str, kind: str, default: Any, na_value: str, told: str) -> Any:
    """A field as a value of a column.  Raises ValueError that says where it is."""
    if text in ("", na_value):
        if default is None:
            raise ValueError(f"{told} is required but missing")
        return default
    if kind == "string":
        return text.encode()
    try:
        return float(text) if "float" in kind else int(text)
    except ValueError:
        raise ValueError(f"{told}: expected a number of {kind}, got {text!r}") from None


def decode_json_example(json_examples: Any, name: Any = None) -> Array:
    """Examples in JSON as serialized ones."""
    read: Any = {"bytesList": base64.b64decode, "floatList": float, "int64List": int}
    lists = {"bytesList": "bytes_list", "floatList": "float_list", "int64List": "int64_list"}

    def serialized(text: bytes) -> bytes:
        found = Example()
        for key, told in json.loads(text)["features"]["feature"].items():
            for kind, own in lists.items():
                for value in told.get(kind, {}).get("value", ()):
                    made = read[kind](value)
                    getattr(found.features.feature[key], own).value.append(made)
        return found.SerializeToString()

    texts = in_bytes(json_examples)
    return in_bytes([serialized(each) for each in texts.view(np.ndarray).reshape(-1)]).reshape(texts.shape)


def table() -> dict[str, Any]:
    """These names of `tf.io`."""
    own = (
        decode_raw, serialize_tensor, parse_tensor, decode_compressed, encode_base64, decode_base64, decode_csv,
        decode_json_example,
    )  # fmt: skip
    return {each.__name__: each for each in own}
