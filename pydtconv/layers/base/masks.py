"""Masks that go with tensors through a model: which steps of a sequence count.

A mask is a tensor of ones and zeros (n, steps).  Layers that make one (Masking, Embedding) and layers that carry it on
set `supports_masking`; `compute_mask(inputs, mask)` says what the output's mask is.  A layer whose `call` takes `mask`
is given that of its input, one with several tensors takes `<argument>_mask`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydtconv import ops, tree
from pydtconv.dtypes import BFLOAT16, from_bits, to_bits


def mask_of(x: Any) -> Any:
    """The mask that goes with a tensor, or None."""
    return getattr(x, "_keras_mask", None)


def set_mask(x: Any, mask: Any) -> None:
    """Lets a mask go with a tensor."""
    x._keras_mask = mask


def masks_of(structure: Any) -> Any:
    """The masks of tensors, in their structure."""
    return tree.map_structure(mask_of, structure)


def have_masks(structure: Any) -> bool:
    return any(mask_of(leaf) is not None for leaf in tree.flatten(structure))


def with_masks(parameters: Iterable[str], arguments: Mapping[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """kwargs of a `call` with these parameters, with the masks of its arguments where it takes them and has none."""
    tensors = {name: value for name, value in arguments.items() if have_masks(value) or _is_tensors(value)}
    tensors = {name: value for name, value in tensors.items() if name != "mask" and not name.endswith("_mask")}
    names = {"mask": next(iter(tensors))} if len(tensors) == 1 else {f"{name}_mask": name for name in tensors}
    found = {
        mask: masks_of(arguments[name])
        for mask, name in names.items()
        if mask in parameters and arguments.get(mask) is None
    }
    return kwargs | found


def _is_tensors(value: Any) -> bool:
    leaves = tree.flatten(value)
    return bool(leaves) and all(hasattr(leaf, "apply_op") for leaf in leaves)


def carry(layer: Any, inputs: Any, outputs: Any, mask: Any) -> None:
    """Sets the masks of a layer's outputs that have none, as the layer computes them."""
    flat = tree.flatten(outputs)
    if all(mask_of(output) is not None for output in flat):
        return
    computed = layer.compute_mask(inputs, mask)
    if computed is None:
        return
    masks = list(computed) if isinstance(computed, (list, tuple)) else [computed]
    for output, each in zip(flat, masks, strict=False):
        if each is not None and mask_of(output) is None:
            set_mask(output, each)


def all_of(*masks: Any) -> Any:
    """Ones where all masks that are given have them; None for none."""
    given = [mask for mask in masks if mask is not None]
    result = given[0] if given else None
    for mask in given[1:]:
        result = ops.multiply(result, mask)
    return result


def any_of(masks: Iterable[Any]) -> Any:
    """Ones where some mask has them; None where one of them is None."""
    masks = list(masks)
    if not masks or any(mask is None for mask in masks):
        return None
    result = masks[0]
    for mask in masks[1:]:
        result = ops.maximum(result, mask)
    return result


def differs(x: Any, value: float) -> Any:
    """1 where x is not the value, as x's dtype holds it, else 0."""
    if x.dtype == BFLOAT16:
        value = from_bits(to_bits(value)).item()
    return ops.abs(ops.sign(ops.subtract(x, float(value))))
