"""Data sets from files: every format that is read, and what is said of missing and damaged ones."""

import codecs
import gzip
import io
import pickle
import struct

import numpy as np
import pytest

from pydtconv import config
from pydtconv.datasets import cifar10, cifar100, fashion_mnist, mnist
from pydtconv.datasets import source as source_module
from pydtconv.datasets.mnist import IDX_FILES
from pydtconv.files.reading import BadFileError
from tests.traced import memory_below

RNG = np.random.default_rng(1)


def images(count, *shape):
    return RNG.integers(0, 256, (count, *shape), dtype=np.uint8)


def labels(count, classes=10):
    return RNG.integers(0, classes, count, dtype=np.uint8)


def idx_bytes(array):
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder, arrays, compressed=True):
    folder.mkdir(parents=True)
    for name, array in zip(IDX_FILES, arrays, strict=True):
        data = idx_bytes(array)
        if compressed:
            (folder / name).write_bytes(gzip.compress(data))
        else:
            (folder / name.removesuffix(".gz")).write_bytes(data)


def flat(data):
    return [array for part in data for array in part]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """(PYDTCONV_DATA, cache folder), both empty, and a network that is down."""
    data, cache = tmp_path / "data", tmp_path / "cache" / "datasets"
    data.mkdir()
    monkeypatch.setenv("PYDTCONV_DATA", str(data))
    monkeypatch.setenv("KERAS_HOME", str(cache.parent))

    def no_network(*args, **kwargs):
        raise OSError("no network in this test")

    monkeypatch.setattr(source_module, "get_file", no_network)
    return data, cache


MNIST_ARRAYS = [images(7, 28, 28), labels(7), images(3, 28, 28), labels(3)]


@pytest.mark.parametrize("compressed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("place", [0, 1], ids=["PYDTCONV_DATA", "cache"])
def test_mnist_idx_files(places, place, compressed):
    write_idx(places[place] / "mnist", MNIST_ARRAYS, compressed)
    for array, expected in zip(flat(mnist.load_data()), MNIST_ARRAYS, strict=True):
        assert array.dtype == np.uint8
        np.testing.assert_array_equal(array, expected)


def test_mnist_npz_comes_before_idx_files(places):
    write_idx(places[0] / "mnist", [images(1, 28, 28), labels(1)] * 2)
    np.savez(
        places[0] / "mnist.npz", **dict(zip(("x_train", "y_train", "x_test", "y_test"), MNIST_ARRAYS, strict=True))
    )
    for array, expected in zip(flat(mnist.load_data()), MNIST_ARRAYS, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_mnist_from_an_absolute_path(places, tmp_path):
    path = tmp_path / "elsewhere.npz"
    np.savez(path, **dict(zip(("x_train", "y_train", "x_test", "y_test"), MNIST_ARRAYS, strict=True)))
    np.testing.assert_array_equal(mnist.load_data(str(path))[0][0], MNIST_ARRAYS[0])


def test_fashion_mnist_in_keras_cache_layout(places):
    write_idx(places[1] / "fashion-mnist", MNIST_ARRAYS)
    for array, expected in zip(flat(fashion_mnist.load_data()), MNIST_ARRAYS, strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("load", [mnist.load_data, fashion_mnist.load_data, cifar10.load_data, cifar100.load_data])
def test_a_missing_data_set_says_where_to_put_which_file(places, load):
    with pytest.raises(FileNotFoundError, match="not on this machine") as error:
        load()
    text = str(error.value)
    assert text.count("\n") == 2
    assert max(map(len, text.splitlines())) < 250
    assert "no network in this test" in text
    assert str(places[0]) in text
    assert str(places[1]) in text
    assert any(
        name in text for name in ("mnist.npz", "train-images-idx3-ubyte.gz", "data_batch_1", "cifar-100-python/train")
    )


def test_a_data_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("PYDTCONV_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"PYDTCONV_DATA=.*nowhere"):
        mnist.load_data()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:10], "header of 16 bytes, the file ends at offset 10"),
        (lambda data: b"\x00\x00\x0d" + data[3:], "magic number 00 00 08 03 at offset 0, found 00 00 0d 03"),
        (lambda data: data[:-5], "ends at offset 5499 instead of 5504"),
        (lambda data: data + b"x", "ends at offset 5505 instead of 5504"),
    ],
    ids=["header", "magic", "short", "long"],
)
def test_a_damaged_idx_file_is_named_with_the_offset(places, change, message):
    folder = places[0] / "mnist"
    write_idx(folder, MNIST_ARRAYS, compressed=False)
    path = folder / "train-images-idx3-ubyte"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=message) as error:
        mnist.load_data()
    assert str(path) in str(error.value)


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_damaged_gzip_data_is_named_with_the_offset(places, damage):
    folder = places[0] / "mnist"
    write_idx(folder, MNIST_ARRAYS)
    path = folder / IDX_FILES[0]
    data = bytearray(path.read_bytes())
    if damage == "truncated":
        del data[len(data) // 2 :]
    else:
        data[-6] ^= 255
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged gzip data near offset \d+") as error:
        mnist.load_data()
    assert str(path) in str(error.value)


def test_images_and_labels_that_do_not_match(places):
    write_idx(places[0] / "mnist", [images(7, 28, 28), labels(6), images(3, 28, 28), labels(3)])
    with pytest.raises(ValueError, match=r"has 7 images, but .* has 6 labels"):
        mnist.load_data()


def test_a_damaged_npz_file_is_named(places):
    np.savez(places[0] / "mnist.npz", x_train=MNIST_ARRAYS[0])
    with pytest.raises(ValueError, match=r"mnist\.npz: expected an \.npz file with x_train, y_train"):
        mnist.load_data()
    (places[0] / "mnist.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ValueError, match=r"mnist\.npz: expected an \.npz file"):
        mnist.load_data()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_train": labels(6)}, r"as many images x_train .* as labels y_train .*\(7, 28, 28\) and uint8 \(6,\)"),
        ({"x_test": images(3, 28)}, r"x_test .* got uint8 \(3, 28\)"),
        ({"y_test": np.array(["a", "b", "c"])}, "y_test: expected an array of numbers"),
        ({"y_test": np.zeros(3)}, r"got .* float64 \(3,\)"),
        ({"y_test": np.array([object()] * 3)}, "y_test: expected an array of numbers"),
    ],
    ids=["lengths", "axes", "strings", "floats", "objects"],
)
def test_an_npz_file_of_other_arrays_is_named(places, changes, message):
    arrays = dict(zip(("x_train", "y_train", "x_test", "y_test"), MNIST_ARRAYS, strict=True))
    np.savez(places[0] / "mnist.npz", **arrays | changes)
    with pytest.raises(BadFileError, match=message) as error:
        mnist.load_data()
    assert str(places[0] / "mnist.npz") in str(error.value)


@pytest.mark.parametrize(
    "header", [bytes(16), bytes((0, 0, 8, 3)) + struct.pack(">3I", 7, 28, 28)], ids=["no", "small"]
)
def test_the_header_is_read_before_the_rest_is_unpacked(places, header):
    folder = places[0] / "mnist"
    write_idx(folder, MNIST_ARRAYS)
    (folder / IDX_FILES[0]).write_bytes(gzip.compress(header + bytes(1 << 25)))
    with memory_below(1 << 23), pytest.raises(BadFileError, match=IDX_FILES[0]):
        mnist.load_data()


def test_a_header_that_claims_too_much_is_refused(places):
    folder = places[0] / "mnist"
    write_idx(folder, MNIST_ARRAYS)
    header = bytes((0, 0, 8, 3)) + struct.pack(">3I", 60000, 280, 280)
    (folder / IDX_FILES[0]).write_bytes(gzip.compress(header + bytes(1 << 20)))
    with pytest.raises(BadFileError, match=r"train-images.* they claim 4704000016"):
        mnist.load_data()


CIFAR_X, CIFAR_Y = images(12, 3, 32, 32), labels(12)


def write_cifar10(folder, python):
    folder.mkdir(parents=True)
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for i, name in enumerate(names):
        x, y = CIFAR_X[2 * i : 2 * i + 2].reshape(2, -1), CIFAR_Y[2 * i : 2 * i + 2]
        if python:
            (folder / name).write_bytes(pickle.dumps({b"data": x, b"labels": y.tolist()}, protocol=2))
        else:
            (folder / f"{name}.bin").write_bytes(np.concatenate([y[:, None], x], axis=1).tobytes())


@pytest.mark.parametrize(
    ("folder", "python"),
    [
        ("cifar-10-batches-bin", False),
        ("cifar-10-batches-py", True),
        ("cifar-10-batches-py-target/cifar-10-batches-py", True),
    ],
)
def test_cifar10(places, folder, python):
    write_cifar10(places[0] / folder, python)
    (x_train, y_train), (x_test, y_test) = cifar10.load_data()
    np.testing.assert_array_equal(x_train, CIFAR_X[:10].transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(y_train, CIFAR_Y[:10, None])
    np.testing.assert_array_equal(x_test, CIFAR_X[10:].transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(y_test, CIFAR_Y[10:, None])
    assert x_train.flags.c_contiguous


def test_cifar10_follows_the_image_data_format(places):
    write_cifar10(places[0] / "cifar-10-batches-bin", python=False)
    config.set_image_data_format("channels_first")
    np.testing.assert_array_equal(cifar10.load_data()[0][0], CIFAR_X[:10])


def test_a_truncated_cifar_file_is_named_with_the_offset(places):
    folder = places[0] / "cifar-10-batches-bin"
    write_cifar10(folder, python=False)
    path = folder / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="ends at offset 6046, 2973 bytes into record 1") as error:
        cifar10.load_data()
    assert str(path) in str(error.value)


def test_a_pickle_that_would_run_code_is_refused(places):
    folder = places[0] / "cifar-10-batches-py"
    write_cifar10(folder, python=True)

    class Harm:
        def __reduce__(self):
            return print, ("harm",)

    (folder / "data_batch_2").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(ValueError, match=r"data_batch_2: expected a file of CIFAR, found builtins\.print in it"):
        cifar10.load_data()


class Named:
    """Pickles as a call of any name."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


PIXELS = CIFAR_X[:2].reshape(2, -1)
PICKLES = {
    "a list": ([1, 2], "expected entries by name, got a list"),
    "no images": ({b"labels": [1, 2]}, "no entry b'data'"),
    "images of text": ({b"data": "text", b"labels": [1, 2]}, r"data: expected uint8 \(n, 3072\)"),
    "images of floats": ({b"data": PIXELS * 1.0, b"labels": [1, 2]}, r"data: expected uint8 .* got float64"),
    "too few labels": ({b"data": PIXELS, b"labels": [1]}, r"labels: expected 2 integers, got int64 \(1,\)"),
    "labels of text": ({b"data": PIXELS, b"labels": ["a", "b"]}, "labels: expected 2 integers"),
    "labels beyond": ({b"data": PIXELS, b"labels": [1, 300]}, "expected labels from 0 to 9, got 1 to 300"),
    "objects": ({b"data": np.array([[], None], object), b"labels": [1, 2]}, "expected an array of numbers"),
    "a large array": (Named(np.ndarray, ((1 << 36,),)), "damaged or no file of CIFAR"),
    "another codec": (Named(codecs.encode, ("text", "rot13")), "expected bytes as text in latin1"),
}


@pytest.mark.parametrize(("entries", "message"), PICKLES.values(), ids=PICKLES)
def test_a_pickle_of_something_else_is_named(places, entries, message):
    folder = places[0] / "cifar-10-batches-py"
    write_cifar10(folder, python=True)
    (folder / "data_batch_2").write_bytes(pickle.dumps(entries, protocol=2))
    with pytest.raises(BadFileError, match=message) as error:
        cifar10.load_data()
    assert str(folder / "data_batch_2") in str(error.value)


def test_a_pickle_that_claims_bytes_that_it_has_not_is_named(places):
    folder = places[0] / "cifar-10-batches-py"
    write_cifar10(folder, python=True)
    (folder / "data_batch_2").write_bytes(b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b"data.")
    with pytest.raises(BadFileError, match=r"data_batch_2: .*found 5 of 1152921504606846976 bytes"):
        cifar10.load_data()


@pytest.mark.parametrize("protocol", [2, 5])
def test_pickles_of_each_protocol(places, protocol):
    folder = places[0] / "cifar-10-batches-py"
    write_cifar10(folder, python=True)
    entries = {b"data": PIXELS, b"labels": np.array([3, 4])}
    (folder / "test_batch").write_bytes(pickle.dumps(entries, protocol=protocol))
    _, (x, y) = cifar10.load_data()
    np.testing.assert_array_equal(x, CIFAR_X[:2].transpose(0, 2, 3, 1))
    assert y[:, 0].tolist() == [3, 4]


@pytest.mark.parametrize("python", [True, False], ids=["python", "binary"])
@pytest.mark.parametrize("mode", ["fine", "coarse"])
def test_cifar100(places, mode, python):
    fine, coarse = labels(12, 100), labels(12, 20)
    folder = places[0] / ("cifar-100-python" if python else "cifar-100-binary")
    folder.mkdir()
    for name, part in (("train", slice(0, 8)), ("test", slice(8, 12))):
        x = CIFAR_X[part].reshape(-1, 3072)
        if python:
            entries = {b"data": x, b"fine_labels": fine[part].tolist(), b"coarse_labels": coarse[part].tolist()}
            (folder / name).write_bytes(pickle.dumps(entries, protocol=2))
        else:
            records = np.concatenate([coarse[part, None], fine[part, None], x], axis=1)
            (folder / f"{name}.bin").write_bytes(records.tobytes())
    (x_train, y_train), (_, y_test) = cifar100.load_data(label_mode=mode)
    expected = fine if mode == "fine" else coarse
    np.testing.assert_array_equal(x_train, CIFAR_X[:8].transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(np.concatenate([y_train, y_test])[:, 0], expected)


def test_cifar100_refuses_an_unknown_label_mode():
    with pytest.raises(ValueError, match="label_mode 'fine' or 'coarse', got 'medium'"):
        cifar100.load_data("medium")


def test_a_download_is_used_once_it_is_there(places, monkeypatch):
    buffer = io.BytesIO()
    np.savez(buffer, **dict(zip(("x_train", "y_train", "x_test", "y_test"), MNIST_ARRAYS, strict=True)))

    def get_file(name, url, **options):
        places[1].mkdir(parents=True)
        (places[1] / name).write_bytes(buffer.getvalue())

    monkeypatch.setattr(source_module, "get_file", get_file)
    np.testing.assert_array_equal(mnist.load_data()[0][0], MNIST_ARRAYS[0])


def test_the_real_mnist(data_folder):
    (x_train, y_train), (x_test, y_test) = mnist.load_data()
    assert x_train.shape == (60000, 28, 28)
    assert x_test.shape == (10000, 28, 28)
    assert y_train[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(y_test).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_the_real_cifar10(data_folder):
    (x_train, y_train), (_, y_test) = cifar10.load_data()
    assert x_train.shape == (50000, 32, 32, 3)
    assert y_train.shape == (50000, 1)
    assert y_train[:3, 0].tolist() == [6, 9, 9]
    assert np.bincount(y_test[:, 0]).tolist() == [1000] * 10
    # means of the training images as the literature gives them
    np.testing.assert_allclose(x_train.mean((0, 1, 2)) / 255, [0.4914, 0.4822, 0.4465], atol=1e-4)
