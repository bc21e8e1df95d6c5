"""Lists and dicts that tell their layer what is put into them, so that layers kept in them are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex

Track = Callable[[Any], None]


def tracked(value: Any, track: Track) -> Any:
    """Tells track about value and everything in it; plain lists and dicts come back as ones that go on telling."""
    if type(value) is list:
        return TrackedList(value, track)
    if type(value) is dict:
        return TrackedDict(value, track)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(tracked(item, track) for item in value)
    track(value)
    return value


class TrackedList(list[Any]):
    """A list that tracks its items."""

    def __init__(self, items: Iterable[Any], track: Track) -> None:
        self._track = track
        super().__init__(tracked(item, track) for item in items)

    def append(self, item: Any) -> None:
        super().append(tracked(item, self._track))

    def insert(self, index: SupportsIndex, item: Any) -> None:
        super().insert(index, tracked(item, self._track))

    def extend(self, items: Iterable[Any]) -> None:
        super().extend(tracked(item, self._track) for item in items)

    def __iadd__(self, items: Iterable[Any]) -> TrackedList:  # type: ignore[misc]
        self.extend(items)
        return self

    def __setitem__(self, index: Any, item: Any) -> None:
        super().__setitem__(index, tracked(item, self._track))

    def __reduce__(self) -> Any:
        return list, (list(self),)


class TrackedDict(dict[Any, Any]):
    """A dict that tracks its values."""

    def __init__(self, items: dict[Any, Any], track: Track) -> None:
        self._track = track
        super().__init__({key: tracked(item, track) for key, item in items.items()})

    def __setitem__(self, key: Any, item: Any) -> None:
        super().__setitem__(key, tracked(item, self._track))

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, item in dict(*args, **kwargs).items():
            self[key] = item

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
