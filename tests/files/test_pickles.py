"""Every reader of pickles: what was written to run code, to take memory or to have no end is refused at once."""

import pickle
import struct
import zipfile

import numpy as np
import pytest

from pydtconv.datasets import cifar
from pydtconv.files import pickles
from pydtconv.files.reading import BadFileError
from pydtconv.interchange.torch_files import read_torch
from tests.traced import memory_below


def read_cifar(path, data):
    path.write_bytes(data)
    return cifar.read_pickle(path, classes=10)


def read_pth(path, data):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", data)
        archive.writestr("net/data/0", bytes(4))
    return read_torch(path)


READERS = {"cifar": read_cifar, "torch": read_pth}

#: a tuple of itself twice, 60 times: it has no end for who hashes it, prints it or makes an array of it
TUPLES = b"(t" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(60))
LISTS = b"]q\0" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(60))
#: a product that takes minutes
LONG_SHAPE = b"(" + b"\x8a\xff" + b"\x7f" * 255 + b"K\2" * 50_000 + b"t"


class Call:
    def __reduce__(self):
        return print, ("harm",)


def array(name, shape, dtype=b"cnumpy\ndtype\n(X\2\0\0\0u1tR"):
    """An entry of an array of so many bytes, as NumPy's pickles have it."""
    made = b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85C\1btR"
    return b"}C" + bytes([len(name)]) + name + made + b"(K\1" + shape + dtype + b"\x89C\4abcdtbs."


def tensor(shape, strides=b")"):
    storage = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" + b"0X\3\0\0\0cpuK\1tQ"
    return b"}X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0" + shape + strides + b"tRs."


HOSTILE = {
    "code": pickle.dumps(Call(), 2),
    "a place of the memo": b"\x80\2Nr\xff\xff\xff\x0f.",
    "bytes that are not there": b"\x80\5\x8e" + struct.pack("<Q", 1 << 60) + b".",
    "an array that is not there": b"\x80\5\x96" + struct.pack("<Q", 1 << 33) + b".",
    "a frame that is not there": b"\x80\4\x95" + struct.pack("<Q", 1 << 60) + b"N.",
    "a key without end": b"}" + TUPLES + b"K\1s.",
    "keys without end": b"}(" + TUPLES + b"K\1u.",
    "a set": b"\x8f(" + TUPLES + b"\x90.",
    "arguments that are a text": b"cnumpy\ndtype\nccollections\nOrderedDict\nX\2\0\0\0abR.",
    "a name without end": b"cnumpy\ndtype\n" + TUPLES + b"\x85R.",
    "labels without end": b"}(C\4datacnumpy\ndtype\n)RC\6labels" + LISTS + b"u.",
    "images without end": b"}(C\4data" + LISTS + b"C\6labels](K\1eu.",
    "a shape without end": array(b"data", TUPLES),
    "a shape of many extents": array(b"data", LONG_SHAPE),
    "a tensor of many extents": tensor(LONG_SHAPE, LONG_SHAPE),
    "a tensor without end": tensor(TUPLES, TUPLES),
    "a state of a tensor": tensor(b")").removesuffix(b"s.") + b"Nbs.",
    "a large element": array(b"data", b"K\1\x85", b"cnumpy\ndtype\n(X\x0b\0\0\0S1000000000tR"),
    "texts that are encoded often": b"](X\x10\x27\0\0" + b"a" * 10_000 + b"q\0c_codecs\nencode\nq\1"
    b"X\6\0\0\0latin1q\2" + b"h\1h\0h\2\x86R" * 10_000 + b"e.",
    "lists": b"](" + b"]" * (1 << 17) + b"e.",
    "many instructions": b"]" + b"Na" * (1 << 17) + b".",
    "nested": b"]" * 100 + b"\x85" * 50_000 + b".",
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_what_was_written_to_do_harm(read, data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pickles, "_MOST", 1 << 17)
    with memory_below(1 << 26), pytest.raises(BadFileError, match=r"a\.file: .*expected"):
        read(tmp_path / "a.file", data)
    assert not capsys.readouterr().out


def test_whole_ones(tmp_path):
    x, y = read_cifar(tmp_path / "a", pickle.dumps({b"data": np.ones((2, 3072), "u1"), b"labels": [3, 4]}, 2))
    assert (x.shape, y.tolist()) == ((2, 3, 32, 32), [3, 4])
    found = read_pth(tmp_path / "b", tensor(b"K\1\x85", b"K\1\x85"))
    assert found["a"].tolist() == [0.0]
