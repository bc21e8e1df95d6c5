"""The objects inside a model and the paths at which Keras 3 keeps their variables in a weights file.

A layer's variables lie under `<path>/vars/0, 1, ...`.  Layers of a sequential or functional model are at
`layers/<class name>[_<count>]`, others at the name of the attribute that holds them, below a list or dict by class name
again.  Attributes are walked in alphabetical order, private ones last; an object that is met twice counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydtconv.layers.layer import Layer
from pydtconv.naming import to_snake_case


def walk(model: Layer) -> Iterator[tuple[str, Layer]]:
    """(path, layer) of the model itself, whose path is "", and of all layers inside."""
    yield from _walk(model, "", set())


def _walk(layer: Layer, path: str, seen: set[int]) -> Iterator[tuple[str, Layer]]:
    if id(layer) in seen:
        return
    seen.add(id(layer))
    yield path, layer
    for name, child in layer._children():
        inner = f"{path}/{name}" if path else name
        if isinstance(child, Layer):
            yield from _walk(child, inner, seen)
        else:
            yield from _walk_container(child, inner, seen)


def _walk_container(container: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Layer]]:
    counts: dict[str, int] = {}
    for child in container.values() if isinstance(container, dict) else container:
        is_layer = isinstance(child, Layer)
        if not is_layer and not isinstance(child, (list, tuple, dict)):
            continue
        name = to_snake_case(type(child).__name__) if is_layer else "container"
        count = counts.get(name, -1) + 1
        counts[name] = count
        inner = f"{path}/{name}_{count}" if count else f"{path}/{name}"
        if is_layer:
            yield from _walk(child, inner, seen)
        else:
            yield from _walk_container(child, inner, seen)
