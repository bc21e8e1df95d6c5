"""The objects inside a model and the paths at which Keras 3 keeps their variables in a weights file.

A layer's variables lie under `<path>/vars/0, 1, ...`.  Layers of a sequential or functional model are at
`layers/<class name>[_<count>]`, others at the name of the attribute that holds them, below a list or dict by class name
again.  Attributes are walked in alphabetical order, private ones last; an object that is met twice counts once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from pydtconv.layers.base.layer import Layer, in_order
from pydtconv.naming import to_snake_case
from pydtconv.own_names import PREFIX


def walk(model: Layer, skipped: Iterable[Layer] = ()) -> Iterator[tuple[str, Layer]]:
    """(path, layer) of the model itself, whose path is "", and of all layers inside, without those that are skipped."""
    yield from _walk(model, "", set(map(id, skipped)))


def other_paths(model: Layer) -> dict[str, list[str]]:
    """Of layers that are met again where they are: the paths, by that of `walk`.

    A layer may be a second attribute's, or what a property of a user's class gives.
    """
    first = {id(layer): path for path, layer in walk(model)}
    found: dict[str, list[str]] = {}
    for path, layer in walk(model):
        own = [vars(cls) for cls in type(layer).__mro__ if not cls.__module__.startswith(("pydtconv.", "builtins"))]
        properties = {name for members in own for name, member in members.items() if isinstance(member, property)}
        for name in sorted(name for name in {*vars(layer), *properties} if not name.startswith(PREFIX)):
            with contextlib.suppress(Exception):  # a property may raise whatever it likes
                held, place = getattr(layer, name), f"{path}/{name}".lstrip("/")
                if isinstance(held, Layer) and first.get(id(held), place) != place:
                    found.setdefault(first[id(held)], []).append(place)
    return found


def walk_held(model: Layer, kind: type) -> Iterator[tuple[str, Any]]:
    """(path, object) of all objects of a class, such as optimizers, that the model and the layers inside hold."""
    seen: set[int] = set()
    for path, layer in walk(model):
        for name in in_order(vars(layer)):
            if not name.startswith(PREFIX):
                for place, held in _held(vars(layer)[name], f"{path}/{name}" if path else name, kind):
                    if id(held) not in seen:
                        seen.add(id(held))
                        yield place, held


def _held(value: Any, path: str, kind: type) -> Iterator[tuple[str, Any]]:
    if isinstance(value, kind):
        yield path, value
    elif isinstance(value, (list, tuple, dict)):
        counts: dict[str, int] = {}
        for held in value.values() if isinstance(value, dict) else value:
            if isinstance(held, kind):
                yield f"{path}/{_counted(to_snake_case(type(held).__name__), counts)}", held


def _walk(layer: Layer, path: str, seen: set[int]) -> Iterator[tuple[str, Layer]]:
    if id(layer) in seen:
        return
    seen.add(id(layer))
    yield path, layer
    for name, child in layer._pydt_children():
        inner = f"{path}/{name}" if path else name
        if isinstance(child, Layer):
            yield from _walk(child, inner, seen)
        else:
            yield from _walk_container(child, inner, seen)


def _walk_container(
    container: Any, path: str, seen: set[int], within: tuple[int, ...] = ()
) -> Iterator[tuple[str, Layer]]:
    """within: the ids of the containers around it; one of them may stand in it again, and is left out."""
    if id(container) in within:
        return
    counts: dict[str, int] = {}
    for child in container.values() if isinstance(container, dict) else container:
        is_layer = isinstance(child, Layer)
        if not is_layer and not isinstance(child, (list, tuple, dict)):
            continue
        inner = f"{path}/{_counted(to_snake_case(type(child).__name__) if is_layer else 'container', counts)}"
        if is_layer:
            yield from _walk(child, inner, seen)
        else:
            yield from _walk_container(child, inner, seen, (*within, id(container)))


def _counted(name: str, counts: dict[str, int]) -> str:
    """The name, with a number from the second time on."""
    counts[name] = count = counts.get(name, -1) + 1
    return f"{name}_{count}" if count else name
