"""`.safetensors` files: eight bytes with the length of a header, the header in JSON, and the numbers.

The header gives dtype, shape and place of each tensor; places must follow one another without gaps and fill the file,
as the format asks.  The file is mapped, and nothing of it is run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.files.reading import BadFileError, elements_of, open_regular, parsing

#: bytes that a header may have: what the format's own reader takes
_HEADER_LIMIT = 100_000_000
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file by name; bfloat16 ones as float32.  Raises BadFileError for any other file."""
    with open_regular(path) as file, parsing(path, "a .safetensors file"):
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _HEADER_LIMIT):
            raise BadFileError(f"expected a header of {max(size - 8, 0)} bytes at most, got {length}")
        header = json.loads(file.read(length), object_pairs_hook=_once)
        if not isinstance(header, dict):
            raise BadFileError(f"expected a header by name, got a {type(header).__name__}")
        header.pop("__metadata__", None)
        found, end = {}, 0
        data = np.memmap(file, "u1", "r", 8 + length) if size > 8 + length else np.zeros(0, "u1")
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            if entry["dtype"] not in _DTYPES:
                raise BadFileError(f"{name}: expected a dtype of {', '.join(_DTYPES)}, got {entry['dtype']!r}")
            dtype, shape, first = np.dtype(_DTYPES[entry["dtype"]]), entry["shape"], end
            with parsing(name, "a tensor"):
                end = first + elements_of(shape) * dtype.itemsize
            if entry["data_offsets"] != [first, end] or end > len(data):
                raise BadFileError(f"{name}: expected bytes {first} to {end} of {len(data)}, got {entry}")
            array = data[first:end].view(dtype).reshape(shape)
            found[name] = _widened(array) if entry["dtype"] == "BF16" else np.array(array)
        if end != len(data):
            raise BadFileError(f"expected {end} bytes of tensors, got {len(data)}")
        return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dict of a header, where no name stands twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise BadFileError(f"expected each name once, got {len(pairs)} entries of {len(made)} names")
    return made


def _widened(bits: np.ndarray) -> np.ndarray:
    """bfloat16 as float32."""
    return (bits.astype("<u4") << 16).view("<f4")
