"""TFRecord files: records of bytes, each with its length and checksums.

length (8 bytes, little endian), masked CRC-32C of the length (4), record, masked CRC-32C of the record (4).
Source: https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import functools
import gzip
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import bytes_of, text_of

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed
_SHORT = 64  # bytes up to which a loop of Python is faster
_COMPRESSIONS = ("", "GZIP", "ZLIB")


def _after(states: np.ndarray) -> np.ndarray:
    """Remainders after a further byte of zeros."""
    for _ in range(8):
        states = (states >> np.uint32(1)) ^ (np.uint32(_POLYNOMIAL) * (states & np.uint32(1)))
    return states


@functools.cache
def _tables(level: int) -> np.ndarray:
    """What the two halves of a remainder (2, 65536) become after 2**level pairs of further bytes of zeros."""
    if level == 0:
        values = np.arange(65536, dtype=np.uint32)
        return np.stack([_after(_after(values << np.uint32(16 * i))) for i in range(2)])
    return _moved(_tables(level - 1), level - 1)


def _moved(states: np.ndarray, level: int) -> np.ndarray:
    """Remainders after 2**level pairs of further bytes of zeros."""
    low, high = _tables(level)
    return low[states & np.uint32(65535)] ^ high[states >> np.uint32(16)]


@functools.cache
def _table() -> list[int]:
    return _after(np.arange(256, dtype=np.uint32)).tolist()


def crc32c(data: bytes) -> int:
    """CRC-32C of bytes.

    The remainder is linear in the data: those of neighbors are joined to that of both, until one is left.
    """
    if len(data) < _SHORT:
        table, remainder = _table(), 0xFFFFFFFF
        for byte in data:
            remainder = table[(remainder ^ byte) & 255] ^ (remainder >> 8)
        return remainder ^ 0xFFFFFFFF
    padded = np.zeros(1 << (len(data) - 1).bit_length(), np.uint8)  # zeros in front change no remainder
    start = len(padded) - len(data)
    padded[start:] = np.frombuffer(data, np.uint8)
    padded[start : start + 4] ^= 255  # the first four bytes carry the initial remainder
    states = _tables(0)[0][padded.view("<u2")]
    level = 0
    while len(states) > 1:
        states = _moved(states[::2], level) ^ states[1::2]
        level += 1
    return int(states[0]) ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The checksum as the files have it: rotated, so that a checksum of checksums is none of the data."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


class TFRecordOptions:
    """compression_type: "", "GZIP" or "ZLIB"."""

    def __init__(self, compression_type: Any = None, **kwargs: Any) -> None:
        self.compression_type = compression_type_of(compression_type)


def compression_type_of(value: Any) -> str:
    """How a file is compressed.  Raises ValueError for what is not known."""
    value = getattr(value, "compression_type", value)
    found = "" if value is None else text_of(value).upper()
    if found not in _COMPRESSIONS:
        raise ValueError(f"compression_type: expected '', 'GZIP' or 'ZLIB', got {value!r}")
    return found


class _Inflated:
    """A file that zlib has compressed, as it was."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._stream, self._left = file, zlib.decompressobj(), b""

    def read(self, size: int) -> bytes:
        """So many bytes, or all where size is -1."""
        size = 1 << 62 if size < 0 else size
        parts, found = [self._left], len(self._left)
        while found < size and (part := self._file.read(1 << 16)):
            parts.append(self._stream.decompress(part))
            found += len(parts[-1])
        data = b"".join(parts)
        self._left = data[size:]
        return data[:size]


def opened(path: str, compression_type: str) -> Any:
    """A file to read, uncompressed, and the file that is to be closed."""
    file = open(path, "rb")  # noqa: SIM115  (the caller closes it)
    return {"": file, "GZIP": gzip.GzipFile(fileobj=file), "ZLIB": _Inflated(file)}[compression_type], file


def records_of(path: Any, compression_type: Any = None) -> Iterator[bytes]:
    """The records of a file.  Raises ValueError that names the file, and where it is cut off or damaged."""
    name, place = text_of(path), 0
    reader, file = opened(name, compression_type_of(compression_type))

    def part(size: int, told: str) -> bytes:
        nonlocal place
        data = reader.read(size + 4)
        if len(data) < size + 4:
            raise ValueError(f"{name}: expected {size + 4} bytes of a {told} at offset {place}, got {len(data)}")
        if struct.unpack("<I", data[-4:])[0] != masked_crc32c(data[:-4]):
            raise ValueError(f"{name}: corrupted {told} at offset {place}: its checksum is another one")
        place += len(data)
        return data[:-4]

    with file:
        while head := reader.read(8):
            if len(head) < 8:
                raise ValueError(f"{name}: expected 8 bytes of a length at offset {place}, got {len(head)}")
            tail = reader.read(4)
            if len(tail) < 4 or struct.unpack("<I", tail)[0] != masked_crc32c(head):
                raise ValueError(f"{name}: no TFRecord file, or corrupted length at offset {place}")
            place += 12
            yield part(struct.unpack("<Q", head)[0], "record")


class TFRecordWriter:
    """Writes records of bytes to a file; a context manager."""

    def __init__(self, path: Any, options: Any = None) -> None:
        kind = compression_type_of(options)
        self._file = open(text_of(path), "wb")  # noqa: SIM115  (close() closes it)
        self._packed = gzip.GzipFile(fileobj=self._file, mode="wb", mtime=0) if kind == "GZIP" else None
        self._stream = zlib.compressobj() if kind == "ZLIB" else None

    def write(self, record: Any) -> None:
        """Writes a record: bytes."""
        data = bytes_of(record)
        head = struct.pack("<Q", len(data))
        parts = head, struct.pack("<I", masked_crc32c(head)), data, struct.pack("<I", masked_crc32c(data))
        whole = b"".join(parts)
        if self._stream is not None:
            self._file.write(self._stream.compress(whole))
        else:
            (self._packed or self._file).write(whole)

    def flush(self) -> None:
        """Gives what was written to the file."""
        if self._packed is not None:
            self._packed.flush()
        if self._stream is not None:
            self._file.write(self._stream.flush(zlib.Z_FULL_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        if self._file.closed:
            return
        if self._packed is not None:
            self._packed.close()
        if self._stream is not None:
            self._file.write(self._stream.flush())
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_stream"):  # the file was opened
            self.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
