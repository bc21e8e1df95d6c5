"""The readers of files: whole files of each kind, how they are read, and the errors that damage may raise."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.util
import io
import json
import os
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pydtconv
from pydtconv import layers, saving
from pydtconv.checkpoints import CheckpointError, read_checkpoint, write_checkpoint
from pydtconv.conv import timings
from pydtconv.datasets import cifar, idx, mnist
from pydtconv.files.reading import BadFileError
from pydtconv.interchange.safetensors import read_safetensors
from pydtconv.interchange.torch_files import read_torch
from pydtconv.profiling import Profile, Trace
from pydtconv.utils import image_dataset_from_directory

RNG = np.random.default_rng(7)


@dataclasses.dataclass(frozen=True)
class Reader:
    """kind: what is read.  name: of the file.  make(folder): whole files.  errors: that damage may raise."""

    kind: str
    name: str
    make: Callable[[Path], list[bytes]]
    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...] = (BadFileError,)


def network() -> Any:
    model = pydtconv.Sequential(
        [
            layers.Input((6, 6, 2)),
            layers.Conv2D(3, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(4, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


_model: list[Any] = []


def trained() -> Any:
    if not _model:
        _model.append(network())
        _model[0].train_on_batch(RNG.normal(size=(4, 6, 6, 2)), RNG.integers(0, 4, 4))
    return _model[0]


def made_by(write: Callable[[Path], Any], name: str) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        write(folder / name)
        data = (folder / name).read_bytes()
        (folder / name).unlink()
        return [data]

    return make


def functional_too(folder: Path) -> list[bytes]:
    x = pydtconv.Input((4, 4, 2))
    y = layers.Add()([layers.Conv2D(2, 1)(x), 2.0 * x])
    model = pydtconv.Model(x, layers.GlobalAveragePooling2D()(y))
    return [
        *made_by(trained().save, "a.keras")(folder),
        *made_by(model.save, "a.keras")(folder),
    ]


def checkpoint(path: Path) -> None:
    state = {"weights": {"a/0": np.arange(12.0).reshape(3, 4)}, "list": [1, (2, None)], "n": {1: np.float32(2)}}
    write_checkpoint(path, state)


def idx_files(folder: Path) -> list[bytes]:
    images = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    data = bytes((0, 0, 8, 3)) + struct.pack(">3I", *images.shape) + images.tobytes()
    return [gzip.compress(data), gzip.compress(bytes(data[:16]) + bytes(5 * 28 * 28))]


def npz_files(folder: Path) -> list[bytes]:
    arrays = {}
    for part, count in (("train", 5), ("test", 3)):
        arrays[f"x_{part}"] = RNG.integers(0, 256, (count, 8, 8), dtype=np.uint8)
        arrays[f"y_{part}"] = RNG.integers(0, 10, count, dtype=np.uint8)
    files = []
    for save in (np.savez, np.savez_compressed):
        buffer = io.BytesIO()
        save(buffer, **arrays)
        files.append(buffer.getvalue())
    return files


def pickles(folder: Path) -> list[bytes]:
    entries = {b"data": RNG.integers(0, 256, (2, 3072), dtype=np.uint8), b"labels": [3, 4], b"batch_label": b"text"}
    return [pickle.dumps(entries, protocol=protocol) for protocol in (2, 4, 5)]


def images(folder: Path) -> list[bytes]:
    from PIL import Image

    picture = Image.fromarray(RNG.integers(0, 256, (12, 10, 3), dtype=np.uint8))
    files = []
    for kind in ("JPEG", "PNG", "GIF", "BMP", "EPS", "TIFF"):
        buffer = io.BytesIO()
        picture.save(buffer, format=kind)
        files.append(buffer.getvalue())
    return files


def read_image(path: Path) -> None:
    data = image_dataset_from_directory(path.parent, labels=None, image_size=(8, 8), workers=1, verbose=False)
    data[0]


#: 24 numbers of the storage "0", as PyTorch's pickles name them
TORCH_TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
    b"0X\3\0\0\0cpuK\x18tQK\0K\x06K\x04\x86K\x04K\1\x86\x89ccollections\nOrderedDict\n)RtR"
)


def torch_files(folder: Path) -> list[bytes]:
    """Two tensors that share a storage, in a zip of its own layout."""
    data = b"\x80\2ccollections\nOrderedDict\n)R(" + b"".join(
        b"X\1\0\0\0" + name + TORCH_TENSOR for name in (b"a", b"b")
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("net/data.pkl", data + b"u.")
        archive.writestr("net/byteorder", "little")
        archive.writestr("net/data/0", RNG.random(24).astype("<f4").tobytes())
    return [buffer.getvalue()]


def onnx_files(folder: Path) -> list[bytes]:
    inputs = pydtconv.Input((6, 6, 2))
    x = layers.Conv2D(3, 3, strides=2, padding="same", activation="relu")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Concatenate()([layers.MaxPooling2D()(x), layers.AveragePooling2D(2)(x)])
    model = pydtconv.Model(inputs, layers.Dense(3, activation="softmax")(layers.Flatten()(2.0 * x)))
    other = pydtconv.Sequential([layers.Input((5, 4)), layers.LayerNormalization(), layers.Dense(2), layers.Softmax()])
    return [
        *made_by(lambda path: model.export(path, format="onnx"), "a.onnx")(folder),
        *made_by(lambda path: other.export(path, format="onnx"), "a.onnx")(folder),
    ]


def timing_files(folder: Path) -> list[bytes]:
    entries = {"cpu | kernel | 1 threads | forward 1x2": {"direct": 1e-3, "im2col": 2e-3}}
    head = {"format": timings.FORMAT, "version": timings.VERSION}
    return [json.dumps(head | {"builds": {timings.build(): entries, "other": {}}}, indent=1).encode()]


def read_timings(path: Path) -> None:
    """Damage is a warning there that names the file, and no entries: made an error here."""
    os.environ["PYDTCONV_CACHE"] = str(path.parent)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        timings.read()
    if told:
        raise BadFileError(str(told[0].message))


def profiles(folder: Path) -> list[bytes]:
    row = {"index": 0, "node": "a", "kind": "conv", "direction": "forward", "seconds": 1e-3, "gradients": [[0, 3]]}
    profile = {"format": "pydtconv profile", "version": 1, "model": "a", "batch_size": 2, "threads": 1}
    profile |= {"dtype": "float32", "variant": "AUTO", "cpu": "x", "samples": 3, "seconds": 1e-2, "timings": [row]}
    profile["gradient_elements"] = 3
    event = {"name": "a", "ph": "X", "cat": "compute", "ts": 0.0, "dur": 1.5, "pid": 0, "tid": 0}
    return [json.dumps({"origin_ns": 5, "traceEvents": [event], "profile": profile}).encode()]


def read_profile(path: Path) -> None:
    Trace.read(path)
    list(Profile.load(path).lines())


def load_weights(path: Path) -> None:
    model = trained()
    before = [v.value.copy() for v in [*model.variables, *model.optimizer.variables]]
    try:
        model.load_weights(path)
    except Exception:
        after = [v.value for v in [*model.variables, *model.optimizer.variables]]
        assert all(map(np.array_equal, before, after)), "the model was changed before the error"
        raise
    for variable, value in zip([*model.variables, *model.optimizer.variables], before, strict=True):
        variable.assign(value)


def load_h5(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        saving.load_model(path)


def safetensors(folder: Path) -> list[bytes]:
    header = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    header["b"] = {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]}
    text = json.dumps(header).encode()
    return [struct.pack("<Q", len(text)) + text + RNG.random(4).tobytes()]


READERS = (
    Reader(
        "weights",
        "a.weights.h5",
        made_by(lambda path: trained().save_weights(path), "a.weights.h5"),
        load_weights,
        (BadFileError, ValueError),
    ),
    Reader("keras", "a.keras", functional_too, saving.load_model, (BadFileError, ValueError)),
    Reader("h5", "a.h5", made_by(lambda path: trained().save(path), "a.h5"), load_h5, (BadFileError, ValueError)),
    Reader("torch", "a.pth", torch_files, read_torch),
    *([Reader("onnx", "a.onnx", onnx_files, saving.load_onnx)] if importlib.util.find_spec("onnx") else []),
    Reader("safetensors", "a.safetensors", safetensors, read_safetensors),
    Reader("checkpoint", "a.npz", made_by(checkpoint, "a.npz"), read_checkpoint, (CheckpointError,)),
    Reader("idx", "a-idx3-ubyte.gz", idx_files, lambda path: idx.read_idx(path, 3)),
    Reader("npz", "mnist.npz", npz_files, mnist._read_npz),
    Reader("pickle", "data_batch_1", pickles, lambda path: cifar.read_pickle(path, classes=10)),
    Reader(
        "records",
        "a.bin",
        lambda folder: [np.insert(RNG.integers(0, 256, (3, 3072), dtype=np.uint8), 0, 3, axis=1).tobytes()],
        lambda path: cifar.read_records(path, classes=10),
    ),
    Reader("image", "a.jpg", images, read_image),
    Reader("timings", "convolutions.json", timing_files, read_timings),
    Reader("profile", "profile.json", profiles, read_profile, (ValueError,)),
)
