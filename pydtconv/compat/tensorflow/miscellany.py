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
from pydtconv.graph.ir.graph import Tensor, current_graph
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


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    **kwargs: Any,
) -> bytes:
    """The bytes of a JPEG of pixels (h, w, 1 or 3) in uint8."""
    pixels, data = np.asarray(image), io.BytesIO()
    if pixels.dtype != np.uint8:
        raise ValueError(f"encode_jpeg: image: expected uint8, got {pixels.dtype}")
    pillow().fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(
        data,
        "JPEG",
        quality=int(quality),
        progressive=progressive,
        optimize=optimize_size,
        subsampling=2 if chroma_downsampling else 0,
    )
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
    return {name: getattr(tree, name) for name in ("flatten", "map_structure", "pack_sequence_as", "is_nested")} | {
        "assert_same_structure": _same_structure
    }


def _same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    tree.map_structure(lambda a, b: None, nest1, nest2)


def compat() -> dict[str, Any]:
    """The names of `tf.compat`."""
    return {"as_bytes": as_bytes, "as_str": as_text, "as_text": as_text}


def test() -> dict[str, Any]:
    """The names of `tf.test`: there is no GPU."""
    kinds = ("cuda", "gpu_support", "rocm", "xla")
    found = dict.fromkeys(("is_gpu_available", *(f"is_built_with_{kind}" for kind in kinds)), _no)
    return {"gpu_device_name": lambda: "", "is_cpu_target_available": lambda target: True, **found}


def autograph() -> dict[str, Any]:
    """The names of `tf.autograph` and of its `experimental`: Python's code is traced as it is."""
    unchanged = dict.fromkeys(("do_not_convert", "to_graph", "to_code"), _decorated)
    nothing = dict.fromkeys(("set_loop_options", "set_verbosity", "trace"), lambda *args, **kwargs: None)
    return unchanged | nothing


def _decorated(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function, also where a decorator has arguments."""
    return func if func is not None else lambda function: function


class UnconnectedGradients:
    """Names of what a tape gives where nothing connects."""

    NONE = "none"
    ZERO = "zero"


class VariableAggregation:
    """Names of what replicas make of a variable."""

    NONE = "none"
    SUM = "sum"
    MEAN = "mean"
    ONLY_FIRST_REPLICA = "only_first_replica"


class VariableSynchronization:
    """Names of when they do it."""

    AUTO = ON_READ = ON_WRITE = NONE = "auto"


def _no(*args: Any, **kwargs: Any) -> bool:
    return False


def executing_eagerly() -> bool:
    """Whether code runs now, and is not traced."""
    graph: Any = current_graph()
    return graph is None or (graph.records and not graph.traced)


def top() -> dict[str, Any]:
    """Names of tensorflow itself."""
    return {
        "TensorShape": lambda extents: Shape(extents),
        "TensorSpec": TensorSpec,
        "as_dtype": lambda dtype: np.dtype(dtype),
        "constant_initializer": initializers.Constant,
        "device": lambda device_name: contextlib.nullcontext(),
        "get_logger": lambda: logging.getLogger("tensorflow"),
        "is_tensor": is_tensor,
        "UnconnectedGradients": UnconnectedGradients,
        "VariableAggregation": VariableAggregation,
        "VariableSynchronization": VariableSynchronization,
        "get_current_name_scope": lambda: "",
        "inside_function": lambda: not executing_eagerly(),
        "executing_eagerly": executing_eagerly,
        "is_symbolic_tensor": lambda tensor: isinstance(tensor, Tensor),
        "name_scope": lambda name: contextlib.nullcontext(),
        "no_gradient": lambda op_type: None,
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
