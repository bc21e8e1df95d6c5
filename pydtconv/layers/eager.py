"""Layers and models on NumPy arrays: traced on tensors of the arrays' shapes and run at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import tree


def call_on_arrays(
    fn: Callable[..., Any], dtype: str, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool
) -> Any:
    """fn(*args, **kwargs) with tensors of a graph in place of the arrays, run at once.  Numbers become `dtype`."""
    from pydtconv.graph import run_once

    args = tuple(_as_arrays(value, dtype) for value in args)
    kwargs = tree.map_structure(lambda leaf: _as_array(leaf, dtype), kwargs)
    leaves = tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]

    def on_tensors(*tensors: Any) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        new_args, new_kwargs = tree.pack_sequence_as((args, kwargs), filled)
        return fn(*new_args, **new_kwargs)

    return run_once(on_tensors, [leaves[i] for i in places], training=training)


def _as_arrays(value: Any, dtype: str) -> Any:
    leaves = tree.flatten(value)
    if (
        leaves
        and all(isinstance(leaf, (int, float)) for leaf in leaves)
        and not isinstance(value, (dict, bool, int, float))
    ):
        return np.asarray(value, dtype)
    return tree.map_structure(lambda leaf: _as_array(leaf, dtype), value)


def _as_array(leaf: Any, dtype: str) -> Any:
    if leaf is None or isinstance(leaf, (str, bool)) or callable(leaf):
        return leaf
    if isinstance(leaf, (np.ndarray, np.generic)) or hasattr(leaf, "__array__"):
        return np.ascontiguousarray(leaf, dtype=dtype)
    return leaf
