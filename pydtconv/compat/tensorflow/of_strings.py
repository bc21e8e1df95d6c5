"""Functions that move or compare elements, for tensors of strings: by NumPy's on arrays of bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import array, in_bytes, is_text

_SAME = (
    "broadcast_to", "concat", "equal", "expand_dims", "not_equal", "repeat", "reshape", "reverse", "roll", "squeeze",
    "stack", "tile", "transpose",
)  # fmt: skip
_NAMES = {"concat": "concatenate", "reverse": "flip"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, _NAMES.get(name, name)) for name in _SAME},
    "boolean_mask": lambda tensor, mask: tensor[np.asarray(mask)],
    "fill": lambda dims, value: np.full(tuple(map(int, dims)), value.item(), object),
    "gather": lambda params, indices, axis=0: np.take(params, np.asarray(indices), axis),
    "identity": np.array,
    "where": lambda condition, x, y: np.where(np.asarray(condition), x, y),
    "zeros_like": lambda input: np.full(input.shape, b"", object),
}  # fmt: skip


def _text(value: Any) -> bool:
    return is_text(value) or (isinstance(value, (list, tuple)) and any(map(_text, value)))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(isinstance(each, np.ndarray) for each in value):
        return [_plain(each) for each in value]
    return in_bytes(value).view(np.ndarray) if _text(value) else value


def of_strings(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which also takes tensors of strings; keywords of such calls go by place."""
    compute = _FUNCTIONS[name]

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        values = *args, *(value for key, value in kwargs.items() if key != "name")
        return array(compute(*map(_plain, values))) if any(map(_text, values)) else function(*args, **kwargs)

    return either


def also_of_strings(table: dict[str, Any]) -> dict[str, Any]:
    """The functions of a table so."""
    return table | {name: of_strings(name, table[name]) for name in _FUNCTIONS.keys() & table.keys()}
