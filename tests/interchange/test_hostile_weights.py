"""Files of weights that were written to take time or memory, or to be read in two ways."""

import json
import struct

import numpy as np
import pytest

from pydtconv.interchange.safetensors import read_safetensors
from pydtconv.interchange.torch_files import read_torch
from tests.interchange.test_weights import pickled

#: a tuple of itself twice, 20 times: 2^20 elements for who walks through it
DOUBLED = b"(t" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(20))
TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
    b"0X\3\0\0\0cpuJ\0\0\4\0tQ"
    b"K\0J\0\0\4\0\x85K\1\x85t"
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"}" + DOUBLED + b"K\1s.", "expected a dict by names, found a dict by tuple"),
        (b"}(" + DOUBLED + b"K\1u.", "expected a dict by names, found a dict by tuple"),
        (b"ccollections\nOrderedDict\n](" + DOUBLED + b"K\1\x86e\x85R.", "expected a dict of tensors; TypeError"),
        (
            b"(X\7\0\0\0storagectorch\nFloatStorage\n" + DOUBLED + b"X\3\0\0\0cpuK\1tQ.",
            "expected the name of a storage",
        ),
        (b"ctorch._utils\n_rebuild_parameter\n}X\1\0\0\0aK\1sb.", "expected attributes of a dict, found some of a"),
        (
            b"}(" + b"".join(b"X\4\0\0\0%04d" % i + TENSOR + b"R" for i in range(100)) + b"u.",
            "expected tensors of 1 storages, got many times as many elements",
        ),
    ],
    ids=["key", "keys", "pairs", "storage", "function", "copies"],
)
def test_pickles(data, message, tmp_path):
    path = tmp_path / "net.pth"
    pickled(path, b"\x80\2" + data, **{"0": bytes(1 << 20)})
    with pytest.raises(ValueError, match=rf"net\.pth: .*{message}"):
        read_torch(path)


def test_dicts_with_attributes_are_read(tmp_path):
    """As those of PyTorch's modules, which keep versions in one."""
    data = b"ccollections\nOrderedDict\n)R(X\1\0\0\0a" + TENSOR + b"Ru}X\1\0\0\0_}X\0\0\0\0K\1ssb."
    pickled(tmp_path / "net.pth", b"\x80\2" + data, **{"0": np.arange(1 << 18, dtype="<f4").tobytes()})
    np.testing.assert_array_equal(read_torch(tmp_path / "net.pth")["a"], np.arange(1 << 18))


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
def test_safetensors(header, message, tmp_path):
    path = tmp_path / "net.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\1\2")
    with pytest.raises(ValueError, match=message):
        read_safetensors(path)
