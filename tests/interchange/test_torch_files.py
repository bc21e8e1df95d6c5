"""`.pth` files: without PyTorch, damaged ones, and ones that were written to take time or memory."""

import pickle

import numpy as np
import pytest

from pydtconv.interchange.torch_files import read_torch
from tests.interchange.weight_files import pickled

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
def test_hostile_pickles(data, message, tmp_path):
    path = tmp_path / "net.pth"
    pickled(path, b"\x80\2" + data, **{"0": bytes(1 << 20)})
    with pytest.raises(ValueError, match=rf"net\.pth: .*{message}"):
        read_torch(path)


def test_dicts_with_attributes_are_read(tmp_path):
    """As those of PyTorch's modules, which keep versions in one."""
    data = b"ccollections\nOrderedDict\n)R(X\1\0\0\0a" + TENSOR + b"Ru}X\1\0\0\0_}X\0\0\0\0K\1ssb."
    pickled(tmp_path / "net.pth", b"\x80\2" + data, **{"0": np.arange(1 << 18, dtype="<f4").tobytes()})
    np.testing.assert_array_equal(read_torch(tmp_path / "net.pth")["a"], np.arange(1 << 18))


def test_pth_without_torch_and_code(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch")
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3).T,
        "b": torch.ones(2, dtype=torch.bfloat16) * 1.5,
        "c": torch.tensor(3),
        "d": torch.nn.Parameter(torch.ones(2, 2, dtype=torch.float16)),
        "e": torch.zeros(0, 3),
    }
    torch.save({"model": tensors, "epoch": 3}, tmp_path / "net.pth")
    found = read_torch(tmp_path / "net.pth")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor.detach().to(torch.float64).numpy())
        assert found[name].shape == tuple(tensor.shape)

    class Evil:
        def __reduce__(self):
            return (print, ("called",))

    torch.save({"a": torch.ones(2), "x": Evil()}, tmp_path / "net.pth")
    with pytest.raises(ValueError, match=r"net\.pth: expected a dict of tensors, found \w+\.print in it"):
        read_torch(tmp_path / "net.pth")


def test_damaged_pth(tmp_path):
    path = tmp_path / "net.pth"
    for data, message in (
        (pickle.dumps({1}, 5), "found the instruction EMPTY_SET"),
        (b"\x80\x02cos\nsystem\n.", r"found os\.system in it"),
        (pickle.dumps([1], 2), "expected a dict of tensors, got a list"),
        (pickle.dumps({"a": 1}, 2), "a: expected a tensor, got a int"),
        (b"\x80\x02}q", "expected a dict of tensors"),
    ):
        pickled(path, data)
        with pytest.raises(ValueError, match=rf"net\.pth: .*{message}"):
            read_torch(path)
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"net\.pth: expected a \.pth file"):
        read_torch(path)
