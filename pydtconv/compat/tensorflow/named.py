"""Functions of `pydtconv.ops` with the names that tensorflow has for their arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pydtconv.compat.tensorflow.arrays import array, has_tensors

#: tensorflow's names of the first arguments, by functions
_NAMES: dict[str, tuple[str, ...]] = {
    "concat": ("values", "axis"),
    "stack": ("values", "axis"),
    "expand_dims": ("input", "axis"),
    "squeeze": ("input", "axis"),
    "repeat": ("input", "repeats", "axis"),
    "roll": ("input", "shift", "axis"),
    "broadcast_to": ("input", "shape"),
    "reverse": ("tensor", "axis"),
    "size": ("input",),
    "zeros_like": ("input", "dtype"),
    "ones_like": ("input", "dtype"),
    "stop_gradient": ("input",),
    "top_k": ("input", "k", "sorted"),
    "tensordot": ("a", "b", "axes"),
    "cross": ("a", "b"),
    "atan2": ("y", "x"),
    "custom_gradient": ("f",),
    "in_top_k": ("targets", "predictions", "k"),
    "linspace": ("start", "stop", "num"),
    "saturate_cast": ("value", "dtype"),
    "searchsorted": ("sorted_sequence", "values", "side"),
    "slice": ("input_", "begin", "size"),
    "vectorized_map": ("fn", "elems"),
    "nextafter": ("x1", "x2"),
    "pinv": ("a", "rcond"),
    "matrix_rank": ("a", "tol"),
    "eigh": ("tensor",),
    **dict.fromkeys(("cholesky", "det", "slogdet"), ("input",)),
    **dict.fromkeys(("elu", "relu", "relu6", "selu", "softplus", "softsign"), ("features",)),
    **dict.fromkeys(
        (
            "add", "divide", "equal", "floordiv", "floormod", "greater", "greater_equal", "less", "less_equal",
            "logical_and", "logical_or", "maximum", "minimum", "mod", "multiply", "not_equal", "pow", "subtract",
            "truediv", "divide_no_nan", "realdiv", "logical_xor",
        ),
        ("x", "y"),
    ),
}  # fmt: skip


#: names of arguments that are one tensor: of lists of tensors, these are stacked
_TENSORS = {"x", "y", "input", "features", "a", "b", "tensor"}
#: TensorFlow 1's names of arguments
_OF_VERSION_1 = {"dim": "axis", "keep_dims": "keepdims", "reduction_indices": "axis", "dimension": "axis"}


def as_named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with tensorflow's names of its arguments, and a `name` that means nothing."""
    theirs = _NAMES.get(name, ("x",))
    try:
        ours = [each for each in inspect.signature(function).parameters if each not in ("args", "kwargs")]
    except (TypeError, ValueError):  # no signature: it takes what comes
        ours = []
    renamed = {new: old for new, old in zip(theirs, ours, strict=False) if new not in ours}
    stacked = [name in _TENSORS for name in theirs]
    accepted = [*theirs, *(each for each in ours if each not in renamed.values() and each not in theirs), "name"]

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        if "name" not in ours:
            kwargs.pop("name", None)
        kwargs = {renamed.get(key, key): value for key, value in kwargs.items()}
        for old in _OF_VERSION_1.keys() & kwargs.keys() - set(ours):
            kwargs[_OF_VERSION_1[old]] = kwargs.pop(old)
        places = list(args)
        for key in ours[len(args) :]:  # operands by place: some functions look at no names
            if key not in kwargs:
                break
            places.append(kwargs.pop(key))
        for i, (is_tensor, value) in enumerate(zip(stacked, places, strict=False)):
            if is_tensor and has_tensors(value):
                places[i] = array(value)
        return function(*places, **kwargs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named.__signature__ = inspect.Signature([inspect.Parameter(each, kind) for each in accepted])  # type: ignore[attr-defined]
    return named


def all_named(table: dict[str, Any]) -> dict[str, Any]:
    """The functions of a table so."""
    return {name: as_named(name, function) for name, function in table.items()}
