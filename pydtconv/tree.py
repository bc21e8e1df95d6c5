"""Nested lists, tuples and dicts of leaves: flatten, map, pack again.  A dict is walked by sorted keys, as in Keras."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from pydtconv.suggest import refusal


def is_nested(structure: Any) -> bool:
    """Whether structure is a list, a tuple or a dict."""
    return isinstance(structure, (list, tuple, dict))


def _keys(mapping: dict[Any, Any]) -> list[Any]:
    if isinstance(mapping, OrderedDict):
        return list(mapping)
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def flatten(structure: Any) -> list[Any]:
    """The leaves in order.  None is a leaf."""
    if isinstance(structure, dict):
        return [leaf for key in _keys(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [leaf for part in structure for leaf in flatten(part)]
    return [structure]


def layout(structure: Any) -> Hashable:
    """How leaves are nested, with the keys of dicts in their order, as something that can be a key; None for a leaf."""
    if isinstance(structure, dict):
        return "dict", tuple((key, layout(part)) for key, part in structure.items())
    if isinstance(structure, (list, tuple)):
        return type(structure).__name__, tuple(map(layout, structure))
    return None


def map_structure(func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True) -> Any:
    """func of every leaf (and of the leaves at the same place in further structures), in the same structure.

    none_is_leaf: whether func is called with None; else None stays as it is.
    """
    if not structures:
        raise ValueError("map_structure: expected at least one structure")
    if none_is_leaf:
        return _mapped(func, *structures)
    return _mapped(lambda leaf, *others: None if leaf is None else func(leaf, *others), *structures)


def _mapped(func: Callable[..., Any], structure: Any, *others: Any) -> Any:
    if isinstance(structure, dict):
        # leaves are visited in the order of flatten; the keys keep the order that they have
        mapped = {key: _mapped(func, structure[key], *(other[key] for other in others)) for key in _keys(structure)}
        return getattr(structure, "_pydt_plain", type(structure))((key, mapped[key]) for key in structure)
    if isinstance(structure, (list, tuple)):
        parts = [_mapped(func, *group) for group in zip(structure, *others, strict=True)]
        if hasattr(structure, "_fields"):
            return type(structure)(*parts)
        return tuple(parts) if isinstance(structure, tuple) else parts
    return func(structure, *others)


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The reverse of flatten.  Raises ValueError when the number of leaves differs."""
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ValueError(f"pack_sequence_as: expected {count} leaves, got {len(flat_sequence)}")
    leaves: Iterator[Any] = iter(flat_sequence)
    return map_structure(lambda _: next(leaves), structure)


def is_shape(structure: Any) -> bool:
    """Whether structure is one shape: a list or tuple of integers and None."""
    return isinstance(structure, (list, tuple)) and all(x is None or isinstance(x, int) for x in structure)


def map_shape_structure(func: Callable[[tuple[int | None, ...]], Any], structure: Any) -> Any:
    """func of every shape in a nested structure of shapes."""
    if is_shape(structure):
        return func(tuple(structure))
    if isinstance(structure, dict):
        return {key: map_shape_structure(func, part) for key, part in structure.items()}
    if isinstance(structure, (list, tuple)):
        return type(structure)(map_shape_structure(func, part) for part in structure)
    raise ValueError(f"expected a shape or a structure of shapes, got {structure!r}")


__getattr__ = refusal(__name__)
