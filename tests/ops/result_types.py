"""The dtypes that functions of `keras.ops` give, by those of their operands: a table, recorded from Keras.

`KERAS_BACKEND=jax python -m tests.ops.result_types` records what Keras gives on a backend; after each run
result_types.json holds, for every call, what any of the backends gave so far.  JAX is recorded with 64-bit numbers.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.ops.keras_calls import IMAGES, ROW, X, Y, calls_of

FILE = Path(__file__).with_name("result_types.json")
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float32", "float64")
NUMBERS = (2, 2.5, True)
KERNEL = IMAGES[0, :2, :3, :, None] * np.ones(5, "float32")
HEADS = IMAGES[..., :2]
#: calls of functions that `keras_calls` leaves to other tests, and of those for images, which are all of one kind
MORE: dict[str, list[tuple]] = {
    **{f"adaptive_{kind}_pool": [(IMAGES, (2, 3), {"data_format": "channels_last"})] for kind in ("average", "max")},
    **{f"{kind}_pool": [(IMAGES, 2, {"data_format": "channels_last"})] for kind in ("average", "max")},
    **{name: [(X,)] for name in ("angle", "copy", "imag", "real", "sparsemax")},
    **{name: [(IMAGES, KERNEL, {"data_format": "channels_last"})] for name in ("conv",)},
    "batch_normalization": [(X, np.abs(ROW), np.abs(ROW), -1), (X, np.abs(ROW), np.abs(ROW), -1, ROW, ROW)],
    "depthwise_conv": [(IMAGES, KERNEL[..., :2], {"data_format": "channels_last"})],
    "dot_product_attention": [(HEADS, HEADS, HEADS, {"flash_attention": False})],
    "einsum": [("ijk,ijk->ij", X, Y), ("ijk->k", X)],
    "moments": [(X, (1,))],
    "image.crop_images": [(IMAGES, 1, 1, 1, 1, {"data_format": "channels_last"})],
    "image.extract_patches": [(IMAGES, 2, {"data_format": "channels_last"})],
    "image.gaussian_blur": [(IMAGES, (3, 3), (1.0, 0.7), {"data_format": "channels_last"})],
    "image.pad_images": [(IMAGES, 1, 2, 1, 0, {"data_format": "channels_last"})],
    "image.resize": [
        (IMAGES, (5, 9), {"data_format": "channels_last", "interpolation": kind}) for kind in ("bilinear", "nearest")
    ],
    **{f"image.{name}": [(IMAGES,)] for name in ("hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv", "sobel_edges")},
    "image.map_coordinates": [(X, np.abs(X[:, :1].repeat(3, 1)[0]), 1)],
}

_OURS = ("affine", "compute", "slice_along")


def arrays_in(args):
    if isinstance(args, (list, tuple)):
        return [array for each in args for array in arrays_in(each)]
    return [args] if isinstance(args, np.ndarray) else []


def _kind(args):
    """The kind of the arrays that are data, not indices, among the arguments."""
    kinds = [array.dtype.kind for array in arrays_in(args)]
    return next((kind for kind in "fcib" if kind in kinds), None)


def as_dtype(x, dtype):
    """Data in another dtype: fractions as 0 to 4 where it holds integers alone."""
    if x.dtype.kind == "c":
        return x.astype(dtype if dtype.startswith("complex") else "complex64")
    x = np.nan_to_num(x, posinf=9, neginf=-9)
    if dtype == "bool":
        return x > 0.5
    if dtype.startswith("complex"):
        return (x + 0.5j * x[..., ::-1]).astype(dtype)
    if x.dtype.kind == "f" and "int" in dtype:
        x = np.abs(x * 5)
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def given(args, first, others=None):
    """The arguments with the data in other dtypes: that of the first array, and that of the others."""
    kind, dtypes = _kind(args), [first]

    def convert(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(convert, value))
        if not isinstance(value, np.ndarray) or value.dtype.kind != kind:
            return value
        return as_dtype(value, dtypes.pop() if dtypes else others or first)

    return convert(args)


def calls(name, function, dtypes=DTYPES):
    """(label, args, kwargs) of calls of a function: each one in all dtypes, the first in pairs of dtypes as well.

    Of functions that Keras lacks there are none.
    """
    if name in _OURS:
        return
    found = [(row[:-1], row[-1]) if isinstance(row[-1], dict) else (row, {}) for row in MORE.get(name, [])]
    for number, (args, kwargs) in enumerate(found or calls_of(name, function)):
        if not arrays_in(args):
            continue
        for dtype in dtypes:
            yield f"{number} {dtype}", given(args, dtype), kwargs
        if number:
            continue
        if sum(array.dtype.kind == _kind(args) for array in arrays_in(args)) > 1:
            for first, second in ((a, b) for a in dtypes for b in dtypes if a != b):
                yield f"0 {first} {second}", given(args, first, second), kwargs
        if list(inspect.signature(function).parameters)[:2] == ["x1", "x2"] and len(args) == 2:
            for dtype, value in ((a, b) for a in dtypes for b in NUMBERS):
                (x,) = given(args[:1], dtype)
                yield f"0 {dtype} {value}", (x, value), kwargs
                yield f"0 {value} {dtype}", (value, x), kwargs


def dtypes_of(result):
    """The names of the dtypes of what a function gives, joined."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return ",".join(map(dtypes_of, result))
    dtype = getattr(result, "dtype", type(result))
    return str(getattr(dtype, "name", getattr(dtype, "__name__", dtype))).removeprefix("torch.")


def table():
    """{name: {label: [the dtypes that Keras gives on its backends]}}"""
    found = {}
    for names, results in json.loads(FILE.read_text()) if FILE.exists() else []:
        row = {label: dtypes.split("|") for dtypes, labels in results.items() for label in labels.split(";")}
        found.update((name, {label: list(each) for label, each in row.items()}) for name in names.split())
    return found


def _write(found):
    rows = {}
    for name, row in sorted(found.items()):
        results = {}
        for label, dtypes in row.items():
            results.setdefault("|".join(sorted(dtypes)), []).append(label)
        key = json.dumps({dtypes: ";".join(labels) for dtypes, labels in sorted(results.items())})
        rows.setdefault(key, []).append(name)
    lines = [f"[{json.dumps(' '.join(names))}, {row}]" for row, names in rows.items()]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def on_backend(keras, x):
    """An array as a tensor of Keras's backend, in its own dtype."""
    if x.dtype.name == "bfloat16" and keras.backend.backend() == "torch":
        return keras.ops.cast(keras.ops.convert_to_tensor(x.astype("float32")), "bfloat16")
    return keras.ops.convert_to_tensor(x, dtype=x.dtype.name)


def keras_dtypes(keras, function, label, args, kwargs):
    """What Keras gives; None where it raises."""

    def convert(value, arrays):
        if isinstance(value, (list, tuple)):
            return type(value)(convert(each, arrays) for each in value)
        return next(arrays) if isinstance(value, np.ndarray) else value

    def apply(*arrays):
        return function(*convert(args, iter(arrays)), **kwargs)

    arrays = arrays_in(args)
    if keras.backend.backend() != "jax":
        try:
            return dtypes_of(apply(*(on_backend(keras, x) for x in arrays)))
        except Exception:
            return None
    import jax

    try:
        result = dtypes_of(jax.eval_shape(apply, *arrays))
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        try:
            result = dtypes_of(apply(*map(jax.numpy.asarray, arrays)))
        except Exception:
            return None
    except Exception:
        return None
    # by default JAX has no 64 bits; they are here for operands that have them
    result = result if "float64" in label else result.replace("float64", "float32")
    return result if "int64" in label else result.replace("int64", "int32")


def functions(ops):
    """(name, function) of all of `keras.ops`, and those of MORE in `keras.ops.image`."""
    for name in sorted(dir(ops)):
        if name[0].islower() and inspect.isfunction(getattr(ops, name)):
            yield name, getattr(ops, name)
    for name in MORE:
        if name.startswith("image."):
            yield name, getattr(ops.image, name.removeprefix("image."))


def main():
    import keras

    if keras.backend.backend() == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    found = table()
    for name, function in functions(keras.ops):
        for label, args, kwargs in calls(name, function):
            dtypes = keras_dtypes(keras, function, label, args, kwargs)
            if dtypes is not None and dtypes not in found.setdefault(name, {}).setdefault(label, []):
                found[name][label].append(dtypes)
    _write(found)


if __name__ == "__main__":
    sys.exit(main())
