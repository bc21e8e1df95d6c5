"""Functions and arguments of TensorFlow 1 that TensorFlow 2 has under other names: `tf.log` is `tf.math.log`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pydtconv.compat.keras2 import noticed
from pydtconv.compat.keras2.arguments import Rows, taking

#: by module, and by the one that has them now: old names, with "=" and the new one where it is another
MOVED: dict[str, dict[str, str]] = {
    "tensorflow": {
        "math": "ceil log log1p is_nan is_inf is_finite rsqrt reciprocal erf lgamma digamma conj angle real imag "
        "unsorted_segment_sum segment_sum segment_mean segment_max confusion_matrix invert_permutation",
        "linalg": "matrix_inverse=inv matrix_determinant=det matrix_transpose cholesky trace cross",
        "random": "random_normal=normal random_uniform=uniform truncated_normal random_shuffle=shuffle",
        "nn": "space_to_depth depth_to_space",
        "io": "read_file decode_raw parse_example parse_single_example FixedLenFeature VarLenFeature",
        "image": "random_crop",
        "strings": "string_join=join string_to_number=to_number regex_replace substr",
        "": "py_func=numpy_function batch_to_space_nd=batch_to_space",
    },
    "tensorflow.nn": {"nn": "softmax_cross_entropy_with_logits_v2=softmax_cross_entropy_with_logits"},
}
_DIM: Rows = {"dim": "axis"}
_DIMENSION: Rows = {"dimension": "axis"}
_REDUCED: Rows = {"keep_dims": "keepdims", "reduction_indices": "axis"}
#: by module, and by function: old arguments
ARGUMENTS: dict[str, dict[str, Rows]] = {
    "tensorflow": {
        **dict.fromkeys(
            ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_any", "reduce_all"),
            _REDUCED,
        ),
        **dict.fromkeys(("argmax", "argmin"), _DIMENSION),
        "expand_dims": _DIM,
        "squeeze": {"squeeze_dims": "axis"},
    },
    "tensorflow.nn": dict.fromkeys(("softmax", "log_softmax"), _DIM),
}
MODULES = MOVED.keys() | ARGUMENTS.keys()


def table(module: str, names: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
    """Old names of a module of tensorflow, and functions that take old arguments.

    names: gives what a module has.
    """
    found: dict[str, Any] = {}
    for home, words in MOVED.get(module, {}).items():
        there = names(f"tensorflow.{home}".rstrip("."))
        for word in words.split():
            old, _, new = word.partition("=")
            path = ".".join(filter(None, ("tf", home, new or old)))
            found[old] = _renamed(f"tf{module[len('tensorflow') :]}.{old}", path, there[new or old])
    for name, rows in ARGUMENTS.get(module, {}).items():
        found[name] = taking(names(module)[name], rows)
    return {**found, **OWN} if module == "tensorflow" else found


def _renamed(old: str, new: str, function: Any) -> Any:
    if isinstance(function, type):
        return function

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        noticed.once(old, f"{old} is an old name: write {new}")
        return function(*args, **kwargs)

    return renamed


def div(x: Any, y: Any, name: str | None = None) -> Any:
    """x / y, of integers the whole part, rounded down."""
    from pydtconv import ops

    noticed.once("tf.div", "tf.div is an old name: write x / y, or x // y")
    whole = all("int" in str(getattr(each, "dtype", type(each).__name__)) for each in (x, y))
    return ops.floor_divide(x, y) if whole else ops.divide(x, y)


def Print(input_: Any, data: Any, message: str = "", **_: Any) -> Any:
    """Prints arrays of data, and gives input_."""
    from pydtconv.compat.tensorflow import functions

    noticed.once("tf.Print", "tf.Print is an old name: write tf.print")
    functions.print(message, *data)
    return input_


def _cast(dtype: str) -> Callable[..., Any]:
    def function(x: Any, name: str | None = None) -> Any:
        from pydtconv import ops

        noticed.once(f"tf.to_{dtype}", f"tf.to_{dtype} is an old name: write tf.cast(x, tf.{dtype})")
        return ops.cast(x, dtype)

    return function


OWN: dict[str, Any] = {
    "div": div, "Print": Print, "tables_initializer": lambda: None, "to_float": _cast("float32"),
    "to_double": _cast("float64"), "to_int32": _cast("int32"), "to_int64": _cast("int64"),
}  # fmt: skip
