"""Layers and models on NumPy arrays: traced on tensors of the arrays' shapes and run at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pydtconv import hooks, tree
from pydtconv.dtypes import real_array, refuse_kinds
from pydtconv.graph.ir.deferred import ValueNeededError
from pydtconv.graph.ir.graph import current_graph
from pydtconv.layers.base import context
from pydtconv.layers.base.masks import mask_of, set_mask
from pydtconv.support.results import with_mask


class AddedLosses:
    """The scalars that layers have added by `add_loss` in a call on arrays or a step, until the next one."""

    records = True

    def __init__(self, owners: Sequence[Any], values: Sequence[Any]) -> None:
        self._owned = [(weakref.ref(owner), value) for owner, value in zip(owners, values, strict=True)]

    def show(self, called: Any) -> None:
        """Makes them the losses of the layer that was called, and of those that have added them."""
        for layer in (called, *(owner() for owner, _ in self._owned)):
            if layer is not None:
                context.recordings[layer] = lambda: self

    def losses_of(self, layers: Iterable[Any]) -> list[Any]:
        """Those of these layers."""
        inside = {id(layer) for layer in layers}
        return [value for owner, value in self._owned if id(owner()) in inside]


def call_on_arrays(
    layer: Callable[..., Any], dtype: str, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool
) -> Any:
    """layer(*args, **kwargs) with tensors of a graph in place of the arrays, run at once, or as its code is written
    where that asks for values.

    Floats, and numbers in lists, become `dtype`; arrays of integers and booleans stay what they are.  Of batches of no
    samples the results are those of one, cut off: operators have extents of 1 or more.

    What layers add to the loss can be read as `layer.losses` afterwards.  Masks of arrays go in, those of results out.
    """
    from pydtconv.graph import run_once

    args = tuple(_as_arrays(value, dtype) for value in args)
    kwargs = tree.map_structure(lambda leaf: _as_array(leaf, dtype), kwargs)
    leaves = tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
    empty = [i for i in places if leaves[i].ndim and len(leaves[i]) == 0 and 0 not in leaves[i].shape[1:]]
    if empty:
        for i in empty:
            leaves[i] = np.zeros((1, *leaves[i].shape[1:]), leaves[i].dtype)
        args, kwargs = tree.pack_sequence_as((args, kwargs), leaves)
        kwargs = {name: False if name == "training" else value for name, value in kwargs.items()}
        result = call_on_arrays(layer, dtype, args, kwargs, training=False)
        return tree.map_structure(lambda y: y[:0] if np.ndim(y) else y, result)

    owners: list[Any] = []
    masked = [i for i in places if mask_of(leaves[i]) is not None]

    def on_tensors(*tensors: Any) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors[: len(places)], strict=True):
            filled[place] = tensor
        for place, mask in zip(masked, tensors[len(places) :], strict=True):
            set_mask(filled[place], mask)
        new_args, new_kwargs = tree.pack_sequence_as((args, kwargs), filled)
        graph: Any = current_graph()
        result = layer(*new_args, **new_kwargs)
        owners.extend(graph.loss_owners)
        return result, list(graph.losses), [mask_of(leaf) for leaf in tree.flatten(result)]

    arrays = [leaves[i] for i in places] + [mask_of(leaves[i]) for i in masked]
    try:
        result, losses, found = run_once(on_tensors, arrays, training=training)
    except ValueNeededError:  # its code asks for values, which are there
        owners.clear()
        result, losses, found = hooks.run_as_written(on_tensors, arrays)
    AddedLosses(owners, losses).show(layer)
    if all(mask is None for mask in found):
        return result
    return tree.pack_sequence_as(result, [with_mask(*each) for each in zip(tree.flatten(result), found, strict=True)])


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
    refuse_kinds("x", leaf)
    if isinstance(leaf, (np.ndarray, np.generic)) or hasattr(leaf, "__array__"):
        array = real_array("layer", leaf)
        array = np.ascontiguousarray(array, dtype=array.dtype if array.dtype.kind in "biu" else dtype)
        return with_mask(array, mask_of(leaf))
    return leaf
