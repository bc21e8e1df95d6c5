"""Every function of `ops` on symbolic tensors, between branches of a model, for its names and places beside Keras's.

`python -m tests.models.operation_graphs` writes operation_graphs.json anew, with Keras.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import ops, tree
from tests.ops.keras_calls import BOOLS, IMAGES, INTS, POSITIVE, SQUARE, X, Y, calls_of

FILE = Path(__file__).with_name("operation_graphs.json")
RANDOM = np.random.default_rng(7)
KERNEL = RANDOM.random((2, 2, 3, 5), np.float32)
ROWS = X.reshape(6, 4)
SEGMENTS = np.array([0, 0, 2, 2, 1, 1])
CORNERS = np.tile(np.array([[0, 0], [0, 5], [3, 0], [3, 5]], "float32"), (2, 1, 1))
HEADS = RANDOM.random((2, 3, 2, 4), np.float32)


def _words(text: str) -> list[str]:
    return text.split()


def _double(x: Any) -> Any:
    return x * 2


#: calls of functions that other tests' table has none of, or none with a tensor
CALLS: dict[str, tuple] = {
    "adaptive_average_pool": (IMAGES, (2, 2)),
    "adaptive_max_pool": (IMAGES, (2, 2)),
    "allclose": (X, Y),
    "angle": (X,),
    "argpartition": (X, 1),
    "array": (X,),
    "associative_scan": (lambda a, b: a + b, X),
    "average_pool": (IMAGES, 2),
    "batch_normalization": (X, X[0, 0], Y[0, 0], -1),
    "cond": (BOOLS[0, 0, 0], lambda: X, lambda: Y),
    "conj": (X,),
    "convert_to_tensor": (X,),
    "conv": (IMAGES, KERNEL),
    "conv_transpose": (IMAGES, KERNEL.transpose(0, 1, 3, 2).copy()),
    "copy": (X,),
    "depthwise_conv": (IMAGES, KERNEL[..., :1].copy()),
    "dot_product_attention": (HEADS, HEADS, HEADS),
    "dtype": (X,),
    "eig": (SQUARE,),
    "eigh": (POSITIVE,),
    "einsum": ("abc,abc->ab", X, Y),
    "empty_like": (X,),
    "fori_loop": (0, 2, lambda i, x: x * 2, X),
    "full": ((2, 3), X[0, 0, 0]),
    "imag": (X,),
    "is_tensor": (X,),
    "jvp": (_double, (X,), (Y,)),
    "linspace": (X, Y),
    "logspace": (X, Y),
    "geomspace": (X, Y),
    "map": (_double, X),
    "max_pool": (IMAGES, 2),
    "moments": (X, 1),
    "ndim": (X,),
    "nonzero": (X,),
    "qr": (SQUARE,),
    "real": (X,),
    "scan": (lambda c, x: (c + x, c), X[0], X),
    "segment_prod": (ROWS, SEGMENTS, 3),
    "separable_conv": (IMAGES, KERNEL[..., :1].copy(), KERNEL[:1, :1].copy()),
    "shape": (X,),
    "size": (X,),
    "sparsemax": (X,),
    "switch": (INTS[0, 0, 0], [_double, _double], X),
    "unravel_index": (INTS % 24, (2, 3, 4)),
    "vectorized_map": (_double, X),
    "view": (X,),
    "view_as_real": (X,),
    "while_loop": (lambda x: False, _double, X),
    "affine": (X, 2.0, 3.0),
    "general_relu": (X,),
    "image.affine_transform": (IMAGES, np.ones((2, 8), "float32")),
    "image.crop_images": (IMAGES, 1, 1, 1, 1),
    "image.elastic_transform": (IMAGES,),
    "image.extract_patches": (IMAGES, 2),
    "image.extract_patches_3d": (RANDOM.random((1, 4, 4, 4, 3), np.float32), 2),
    "image.gaussian_blur": (IMAGES,),
    "image.hsv_to_rgb": (IMAGES,),
    "image.map_coordinates": (X[0], np.ones((2, 5), "float32"), 1),
    "image.pad_images": (IMAGES, 1, 1, 1, 1),
    "image.perspective_transform": (IMAGES, CORNERS, CORNERS + 1),
    "image.resize": (IMAGES, (2, 3)),
    "image.rgb_to_grayscale": (IMAGES,),
    "image.rgb_to_hsv": (IMAGES,),
    "image.scale_and_translate": (IMAGES, (2, 8, 8, 3), X[0, 0, :2].copy(), X[0, 0, :2].copy(), (1, 2), "linear"),
    "image.sobel_edges": (IMAGES,),
    "image.ssim": (np.ones((2, 16, 16, 3), "float32"), np.ones((2, 16, 16, 3), "float32")),
}


def _method(name: str, *others: Any) -> Any:
    return lambda *xs: getattr(xs[0], name)(*xs[1:], *others)


_ARITHMETIC = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow lt le gt ge"
#: Python's operators and methods of a symbolic tensor, by what stands for their names in the table
METHODS: dict[str, tuple] = {
    **{
        f"x {name} x": (_method(f"__{name}__"), X, Y)
        for name in [
            "add",
            "radd",
            "sub",
            "rsub",
            "mul",
            "rmul",
            "truediv",
            "rtruediv",
            "floordiv",
            "rfloordiv",
            "mod",
            "rmod",
            "pow",
            "rpow",
            "lt",
            "le",
            "gt",
            "ge",
        ]
    },
    **{f"x {name} 2": (_method(f"__{name}__", 2), X) for name in ("truediv", "rtruediv", "pow", "rpow", "ne")},
    **{f"x {name} b": (_method(f"__{name}__"), BOOLS, BOOLS) for name in ("and", "or", "xor", "rand", "ror", "rxor")},
    **{f"{name} x": (_method(f"__{name}__"), X) for name in ("neg", "abs")},
    "invert b": (_method("__invert__"), BOOLS),
    "x matmul x": (_method("__matmul__"), SQUARE, SQUARE),
    "x[:, 0]": (lambda x: x[:, 0], X),
    "x[:, ::2]": (lambda x: x[:, ::2], X),
    "x[..., None]": (lambda x: x[..., None], X),
    "x.reshape": (_method("reshape", (2, 12)), X),
    "x.squeeze": (_method("squeeze", 1), X[:, :1]),
}


#: functions that give no operation in Keras: why
NONE_IN_KERAS = {
    **dict.fromkeys(
        ["affine", "general_relu", "linear", "mean_of", "mish", "slice_along", "Crop"], "of pydtconv alone"
    ),
    **dict.fromkeys(
        ["arange", "bartlett", "blackman", "hamming", "hanning", "kaiser", "identity", "eye", "tri"],
        "makes an array of numbers",
    ),
    **dict.fromkeys(_words("empty ones zeros"), "makes an array of a shape"),
    **dict.fromkeys(_words("dtype is_tensor shape"), "gives no tensor"),
    **dict.fromkeys(_words("custom_gradient vectorize"), "gives a function"),
    "convert_to_numpy": "refuses symbolic tensors",
    "cond": "takes no functions that give arrays, on PyTorch",
}
#: functions that refuse symbolic tensors here, in words: why
ARRAYS_ONLY = {
    **dict.fromkeys(_words("bincount nonzero unique"), "the shape depends on values"),
    **dict.fromkeys(_words("polar view_as_complex view_as_real"), "graphs have no complex numbers"),
    "image.elastic_transform": "draws random numbers; there is a layer",
    "jvp": "records by itself",
}


def names() -> list[str]:
    """All functions of `ops` and `ops.image`, and `METHODS`."""
    found = [name for name in dir(ops) if not name.startswith("_") and inspect.isfunction(getattr(ops, name))]
    return [*found, *(f"image.{name}" for name in ops.image.__all__), *METHODS]


def call_of(name: str) -> tuple[tuple, dict]:
    """Arguments of a call; the arrays among them are to be symbolic."""
    if name in METHODS:
        return METHODS[name][1:], {}
    if name in CALLS:
        return CALLS[name], {}
    return next(iter(calls_of(name, getattr(ops, name))), ((), {}))


def graph_of(keras: Any, name: str) -> str | None:
    """The names of a model's operations in their order: the function, and a branch as long as its own beside it.

    None where the function refuses symbolic tensors, or gives none.
    """
    keras.utils.clear_session(free_memory=False)
    function = METHODS[name][0] if name in METHODS else keras.ops
    for part in () if name in METHODS else name.split("."):
        function = getattr(function, part)
    args, kwargs = call_of(name)
    inputs: list[Any] = []

    def symbolic(leaf: Any) -> Any:
        if not isinstance(leaf, (np.ndarray, np.generic)):
            return leaf
        dtype = str(leaf.dtype)
        inputs.append(keras.Input(batch_shape=np.shape(leaf), dtype=dtype, name=f"in{len(inputs)}"))
        return keras.layers.Identity(name=f"p{len(inputs) - 1}")(inputs[-1])

    args = tree.map_structure(symbolic, args)
    if not inputs:
        return None
    found = [leaf for leaf in tree.flatten(function(*args, **kwargs)) if isinstance(leaf, keras.KerasTensor)]
    if not found or found[0]._keras_history is None:
        return None
    branch = inputs[0]
    for i in range(6):
        branch = keras.layers.Identity(name=f"b{i}")(branch)
    last = keras.layers.Identity(name="z")(found[0])
    return " ".join(operation.name for operation in keras.Model(inputs, [last, branch]).operations)


def main() -> None:
    from tests.real_keras import import_keras

    keras, found = import_keras(), {}
    for name in names():
        try:
            found[name] = graph_of(keras, name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
            found[name] = None
    FILE.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
