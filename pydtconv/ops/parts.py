"""Namespaces in which Keras has the functions of `ops` once more, by what they do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from pydtconv.suggest import refusal

#: names of functions by the module of Keras that has them, and what Keras has not ("own")
PLACES: dict[str, list[str]] = {}


def exported(numpy: Iterable[str] | str = (), **places: str) -> list[str]:
    """The names that a file of functions exports, by the module of `keras.src.ops` that has their operations.

    numpy: by default the place of all.  own: names that are not Keras's.  activations: of `keras.src.activations`.
    """
    others = {place: names.split() for place, names in places.items()}
    elsewhere = {name for names in others.values() for name in names}
    given = numpy.split() if isinstance(numpy, str) else numpy
    others["numpy"] = [name for name in given if name not in elsewhere]
    for place, names in others.items():
        PLACES.setdefault(place, []).extend(names)
    return [name for names in others.values() for name in names]


def part_of_ops(module: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The `__all__`, `__getattr__` and `__dir__` of the module: names of `pydtconv.ops`, and what to use for others."""
    names = sorted(PLACES[module.rpartition(".")[2]])
    refuse = refusal(module, names)

    def __getattr__(name: str) -> Any:
        return getattr(sys.modules["pydtconv.ops"], name) if name in names else refuse(name)

    __getattr__.refuses = True  # type: ignore[attr-defined]
    return names, __getattr__, lambda: names
