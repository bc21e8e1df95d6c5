"""`LastUsed`: what is kept for keys, up to a number of entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LastUsed(Generic[T]):
    """Values by keys; of more than `most`, the one that was not used for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """The value of a key, which is used now; None where there is none."""
        found = self._values.get(key)
        if found is not None:
            try:  # noqa: SIM105  (contextlib.suppress takes microseconds of each step)
                self._values.move_to_end(key)
            except KeyError:  # another thread has dropped it meanwhile
                pass
        return found

    def put(self, key: Hashable, value: T) -> tuple[Hashable, T] | None:
        """Keeps a value; returns the key and the value that went, if any."""
        self._values[key] = value
        self._values.move_to_end(key)
        return self._values.popitem(last=False) if len(self._values) > self._most else None

    def clear(self) -> None:
        """Drops all."""
        self._values.clear()

    def values(self) -> list[T]:
        """All, that which was used last at the end."""
        return list(self._values.values())
