"""The wire format of Protocol Buffers: fields with numbers, as far as TensorFlow's records of data need it.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """An integer, seven bits a byte; negative ones in 64 bits."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes: a string, a message, or packed numbers."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    """A field of an integer."""
    return varint(number << 3 | VARINT) + varint(value)


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """An integer, and the place behind it."""
    value = shift = 0
    while place < len(data):
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            break
    raise ValueError(f"expected an integer of at most ten bytes, got no end at offset {place} of {len(data)}")


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(number, kind, value) of each field of a message; the value is an integer or bytes.

    Raises ValueError for what is no message, or cut off.
    """
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, place = read_varint(data, place)
            yield number, kind, value
            continue
        if kind not in (FIXED64, BYTES, FIXED32) or not number:
            raise ValueError(f"expected a message of Protocol Buffers, got field {number} of kind {kind}")
        size = {FIXED64: 8, FIXED32: 4}.get(kind, 0)
        if kind == BYTES:
            size, place = read_varint(data, place)
        if place + size > len(data):
            raise ValueError(f"expected {size} bytes of field {number} at offset {place}, got {len(data) - place}")
        yield number, kind, data[place : place + size]
        place += size


def varints(data: bytes) -> Iterator[int]:
    """Packed integers."""
    place = 0
    while place < len(data):
        value, place = read_varint(data, place)
        yield value


def signed(value: int) -> int:
    """An integer of 64 bits with its sign."""
    return value - (1 << 64) if value >> 63 else value
