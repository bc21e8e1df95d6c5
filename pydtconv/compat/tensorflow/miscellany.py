"""Small names of tensorflow around the functions of tensors: files, versions, structures, devices."""

from __future__ import annotations

import contextlib
import glob
import io
import logging
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pydtconv import initializers, tree
from pydtconv.compat.tensorflow.arrays import Array, Shape, array
from pydtconv.files.pixels import encoded_png, pillow
from pydtconv.graph.ir.deferred import ValueNeededError
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable


class TensorSpec(NamedTuple):
    """Shape and dtype of a tensor: of the arguments of a function, or of what a generator gives."""

    shape: Any = None
    dtype: Any = "float32"
    name: str | None = None


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor or a variable."""
    return isinstance(x, (Array, Tensor, Variable))


def as_bytes(text: Any, encoding: str = "utf-8") -> bytes:
    return text if isinstance(text, bytes) else str(text).encode(encoding)


def as_text(text: Any, encoding: str = "utf-8") -> str:
    return text.decode(encoding) if isinstance(text, bytes) else str(text)


def write_file(filename: Any, contents: bytes, name: str | None = None) -> None:
    Path(str(filename)).write_bytes(contents)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> bytes:
    """The bytes of a PNG of pixels (h, w, 1 to 4) in uint8 or uint16."""
    return encoded_png(np.asarray(image))


def encode_jpeg(image: Any, **kwargs: Any) -> bytes:
    """The bytes of a JPEG of pixels (h, w, 1 or 3) in uint8."""
    pixels, data = np.asarray(image), io.BytesIO()
    if pixels.dtype != np.uint8:
        raise ValueError(f"encode_jpeg: image: expected uint8, got {pixels.dtype}")
    pillow().fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(data, "JPEG")
    return data.getvalue()


def encoders() -> dict[str, Any]:
    """Functions of `tf.io` and `tf.image` that write images."""
    return {each.__name__: each for each in (encode_jpeg, encode_png, write_file)}


def gfile() -> dict[str, Any]:
    """The names of `tf.io.gfile`."""
    return {
        "GFile": open,
        "exists": os.path.exists,
        "glob": lambda pattern: sorted(glob.glob(str(pattern))),
        "isdir": os.path.isdir,
        "join": os.path.join,
        "listdir": os.listdir,
        "makedirs": lambda path: os.makedirs(path, exist_ok=True),
        "mkdir": os.mkdir,
        "remove": os.remove,
    }


def nest() -> dict[str, Any]:
    """The names of `tf.nest`."""
    return {name: getattr(tree, name) for name in ("flatten", "map_structure", "pack_sequence_as")}


def compat() -> dict[str, Any]:
    """The names of `tf.compat`."""
    return {"as_bytes": as_bytes, "as_str": as_text, "as_text": as_text}


def test() -> dict[str, Any]:
    """The names of `tf.test`: there is no GPU."""
    return {"gpu_device_name": lambda: "", **dict.fromkeys(("is_gpu_available", "is_built_with_cuda"), _no)}


def debugging() -> dict[str, Any]:
    """The names of `tf.debugging`: what is asserted of values that are there; nothing where code is traced."""
    relations = {
        "equal": np.equal, "greater": np.greater, "greater_equal": np.greater_equal, "less": np.less,
        "less_equal": np.less_equal, "none_equal": np.not_equal,
    }  # fmt: skip
    found = {f"assert_{name}": _asserting(name, relation) for name, relation in relations.items()}
    return found | {"enable_check_numerics": lambda *args, **kwargs: None}


def _asserting(kind: str, relation: Any) -> Any:
    def check(x: Any, y: Any, message: str | None = None, summarize: Any = None, name: str | None = None) -> None:
        try:
            holds = bool(np.all(relation(np.asarray(x), np.asarray(y))))
        except ValueNeededError:
            return
        if not holds:
            raise ValueError(f"assert_{kind}: {message or ''}: got {x!r} and {y!r}")

    return check


def _no(*args: Any, **kwargs: Any) -> bool:
    return False


def top() -> dict[str, Any]:
    """Names of tensorflow itself."""
    return {
        "TensorShape": lambda extents: Shape(extents),
        "TensorSpec": TensorSpec,
        "as_dtype": lambda dtype: np.dtype(dtype),
        "constant_initializer": initializers.Constant,
        "device": lambda name: contextlib.nullcontext(),
        "get_logger": lambda: logging.getLogger("tensorflow"),
        "is_tensor": is_tensor,
        "name_scope": lambda name: contextlib.nullcontext(),
        "numpy_function": numpy_function,
        "ones_initializer": initializers.Ones,
        "py_function": numpy_function,
        "random_normal_initializer": initializers.RandomNormal,
        "random_uniform_initializer": initializers.RandomUniform,
        "zeros_initializer": initializers.Zeros,
    }


def numpy_function(func: Any, inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
    """func of arrays: a pipeline runs Python code anyway."""
    return tree.map_structure(array, func(*inp))
