"""Lists and dicts that tell their layer what is put into them and taken out, so that layers kept in them are found."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

if TYPE_CHECKING:
    _Base = dict[Any, Any]
else:
    _Base = object


class Owner(Protocol):
    """The layer that has the lists and dicts."""

    def _pydt_track(self, value: Any) -> None:
        """Something has joined."""

    def _pydt_release(self, gone: Any) -> None:
        """Something, or what is in it, has left one of the places where it was."""

    def _pydt_replaced(self, gone: Any, item: Any) -> None:
        """An item has left, and another one has joined, in its place."""


def tracked(value: Any, owner: Owner) -> Any:
    """Tells the owner about value and everything in it; plain lists and dicts come back as ones that go on telling.

    So do ordered dicts and those with defaults.  Lists and dicts of other classes stay what they are.
    """
    kind = type(value)
    if kind in _TELLING:
        return _TELLING[kind](value, owner)
    if isinstance(value, tuple):
        items = [tracked(item, owner) for item in value]
        return kind(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, (list, dict)):
        if isinstance(value, (TrackedList, _Telling)) and value._owner is not owner:
            return tracked(value.copy(), owner)
        for item in inside(value):
            owner._pydt_track(item)
    else:
        owner._pydt_track(value)
    return value


def is_tracked(value: Any) -> bool:
    """Whether value is a list or dict that tells its layer, or a tuple with one."""
    if isinstance(value, tuple):
        return any(map(is_tracked, value))
    return isinstance(value, (TrackedList, _Telling))


def inside(value: Any, within: tuple[int, ...] = ()) -> Iterator[Any]:
    """Value, or what is in it, where it is a list, a tuple or a dict.

    within: the ids of those that are looked into already, which may hold themselves.
    """
    if not isinstance(value, (list, tuple, dict)):
        yield value
    elif id(value) not in within:
        for item in value.values() if isinstance(value, dict) else value:
            yield from inside(item, (*within, id(value)))


class TrackedList(list[Any]):
    """A list that tracks its items."""

    def __init__(self, items: Iterable[Any], owner: Owner) -> None:
        self._owner = owner
        super().__init__(tracked(item, owner) for item in items)

    def append(self, item: Any) -> None:
        super().append(tracked(item, self._owner))

    def insert(self, index: SupportsIndex, item: Any) -> None:
        super().insert(index, tracked(item, self._owner))

    def extend(self, items: Iterable[Any]) -> None:
        super().extend(tracked(item, self._owner) for item in items)

    def __iadd__(self, items: Iterable[Any]) -> TrackedList:  # type: ignore[misc]
        self.extend(items)
        return self

    def __setitem__(self, index: Any, item: Any) -> None:
        gone = self[index]
        super().__setitem__(index, tracked(item, self._owner))
        self._owner._pydt_replaced(gone, item)

    def __delitem__(self, index: Any) -> None:
        gone = self[index]
        super().__delitem__(index)
        self._owner._pydt_release(gone)

    def pop(self, index: SupportsIndex = -1) -> Any:
        gone = super().pop(index)
        self._owner._pydt_release(gone)
        return gone

    def remove(self, item: Any) -> None:
        del self[self.index(item)]

    def clear(self) -> None:
        del self[:]

    def __reduce__(self) -> Any:
        return list, (list(self),)


class _Telling(_Base):
    """A dict that tracks its values: what its kinds have in common."""

    _owner: Owner

    def _fill(self, items: dict[Any, Any], owner: Owner) -> None:
        self._owner = owner
        for key, item in items.items():
            super().__setitem__(key, tracked(item, owner))

    def __setitem__(self, key: Any, item: Any) -> None:
        gone = self.get(key)
        super().__setitem__(key, tracked(item, self._owner))
        self._owner._pydt_replaced(gone, item)

    def __delitem__(self, key: Any) -> None:
        gone = self[key]
        super().__delitem__(key)
        self._owner._pydt_release(gone)

    def pop(self, key: Any, *default: Any) -> Any:
        gone = super().pop(key, *default)
        self._owner._pydt_release(gone)
        return gone

    def popitem(self) -> tuple[Any, Any]:
        key, gone = super().popitem()
        self._owner._pydt_release(gone)
        return key, gone

    def clear(self) -> None:
        gone = list(self.values())
        super().clear()
        self._owner._pydt_release(gone)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, item in dict(*args, **kwargs).items():
            self[key] = item

    def __ior__(self, items: Any) -> Any:
        self.update(items)
        return self

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> Any:
        """One that tells nobody."""
        return dict(self)

    def __or__(self, items: Any) -> Any:
        return self.copy() | items

    def __ror__(self, items: Any) -> Any:
        return items | self.copy()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class TrackedDict(_Telling, dict[Any, Any]):
    """A dict that tracks its values."""

    _pydt_plain = dict

    def __init__(self, items: dict[Any, Any], owner: Owner) -> None:
        super().__init__()
        self._fill(items, owner)


class TrackedOrderedDict(_Telling, OrderedDict[Any, Any]):  # type: ignore[misc]
    """An ordered dict that tracks its values."""

    _pydt_plain = OrderedDict

    def __init__(self, items: OrderedDict[Any, Any], owner: Owner) -> None:
        super().__init__()
        self._fill(items, owner)

    def copy(self) -> Any:
        return OrderedDict(self)

    def __reduce__(self) -> Any:
        return OrderedDict, (list(self.items()),)


class TrackedDefaultDict(_Telling, defaultdict[Any, Any]):
    """A dict with defaults that tracks its values."""

    def __init__(self, items: defaultdict[Any, Any], owner: Owner) -> None:
        super().__init__(items.default_factory)
        self._fill(items, owner)

    def copy(self) -> Any:
        return defaultdict(self.default_factory, self)

    __copy__ = copy

    def __missing__(self, key: Any) -> Any:
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = self.default_factory()
        return self[key]

    def __reduce__(self) -> Any:
        return defaultdict, (self.default_factory, dict(self))


#: kinds of lists and dicts, and those that track what is in them
_TELLING: dict[type, Any] = {
    list: TrackedList,
    dict: TrackedDict,
    OrderedDict: TrackedOrderedDict,
    defaultdict: TrackedDefaultDict,
}
