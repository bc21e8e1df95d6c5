"""`.safetensors` files: damaged ones, and ones that were written to be read in two ways."""

import json
import struct

import numpy as np
import pytest

from pydtconv.interchange.safetensors import read_safetensors
from tests.interchange.weight_files import write_safetensors


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            b'{"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "a": {"dtype": "I8", "shape": [2], '
            b'"data_offsets": [0, 2]}}',
            "expected each name once",
        ),
        (
            json.dumps({"a": {"dtype": "U8", "shape": [1] * 99 + [2], "data_offsets": [0, 2]}}).encode(),
            "a: expected up to 64 extents",
        ),
    ],
    ids=["twice", "axes"],
)
def test_hostile_headers(header, message, tmp_path):
    path = tmp_path / "net.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\1\2")
    with pytest.raises(ValueError, match=message):
        read_safetensors(path)


def test_damaged_safetensors(tmp_path):
    path = tmp_path / "net.safetensors"
    write_safetensors(path, {"a": np.arange(4, dtype="float32"), "b": np.zeros((2, 0), "int64")})
    found = read_safetensors(path)
    np.testing.assert_array_equal(found["a"], np.arange(4))
    assert found["b"].shape == (2, 0)
    data = path.read_bytes()
    for bad, message in (
        (data[:-1], "expected bytes 0 to 16 of 15"),
        (data + b"x", "expected 16 bytes of tensors, got 17"),
        (struct.pack("<Q", 1 << 60) + data[8:], "expected a header of"),
        (data.replace(b'"F32"', b'"F99"'), "a: expected a dtype of"),
        (data.replace(b"[4]", b"[9]"), "a: expected bytes 0 to 36"),
        (data.replace(b"[0, 16]", b"[4, 20]"), "a: expected bytes 0 to 16"),
        (b"\2\0\0\0\0\0\0\0[]", "expected a header by name, got a list"),
        (b"", "expected a header"),
    ):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=rf"net\.safetensors: .*{message}"):
            read_safetensors(path)
