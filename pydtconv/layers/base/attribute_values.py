"""Attributes of layers that their code reads: numbers, truth values, strings, functions, small arrays, lists of them.

A plan holds the values that it was traced with.  Where one changes between steps (`layer.beta = 0.5` in a callback),
the next step is traced with the new one; plans of values that come again are kept.  Which names count is seen in the
code: those that a method mentions, and all that the `__init__` of a class of pydtconv does.  What is added to a
Sequential and taken off counts, too (its `_pydt_edits`), what is frozen and thawed, and in which dtype a layer
computes.  Of functions and other objects that are called, and of lists, tuples, dicts and arrays it is seen when others
take their place, and of lists and dicts when one of their items is set; what NumPy writes into an array is not.
"""

from __future__ import annotations

import hashlib
import types
import weakref
from itertools import count
from typing import Any

import numpy as np

from pydtconv.graph.ir import tracing
from pydtconv.layers.base import layer_tree

_PLAIN = (bool, int, float, complex, str, types.NoneType, np.generic)
#: methods that make an object, which a step does not call, and what layers keep of themselves
OTHER = ("__init__", "build", "get_config", "from_config", "compile", "fit", "on_epoch_end", "on_epoch_begin")
_OWN = frozenset({"built", "name", "stop_training", "supports_masking"})
_missing = object()
#: where functions of a class hold another one
_WAYS = ("fget", "__func__", "_call", "__wrapped__")
#: items of a list or a dict, and elements of an array, that are looked at
_LARGEST = 256

_names: weakref.WeakKeyDictionary[type, frozenset[str]] = weakref.WeakKeyDictionary()
#: a number for each object that is called, by its address, which another one may get when it is gone
_called: dict[int, tuple[Any, int]] = {}
_numbers = count()


def is_ours(code: Any) -> bool:
    """Whether a class or a function is pydtconv's own."""
    return (code.__module__ or "").startswith("pydtconv.")


def is_plain(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.size <= _LARGEST and value.dtype.kind in "biufc"
    if isinstance(value, dict):
        return len(value) <= _LARGEST and all(map(is_plain, value.values()))
    return isinstance(value, _PLAIN) or (
        isinstance(value, (tuple, list)) and len(value) <= _LARGEST and all(map(is_plain, value))
    )


def counts(value: Any) -> bool:
    return callable(value) or is_plain(value)


def _number(value: Any) -> int:
    """What tells an object from all others."""
    key = id(value)
    if key not in _called:
        try:
            holder: Any = weakref.ref(value, lambda _: _called.pop(key, None))
        except TypeError:  # nothing can refer to it weakly
            holder = value
        _called[key] = holder, next(_numbers)
    return _called[key][1]


def _told(value: Any) -> str:
    """The value in words, equal where the values are."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.tolist()}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_told(item)}' for key, item in value.items())}}}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_told, value))})"
    return f"called {_number(value)}" if callable(value) else f"{type(value).__name__} {value!r}"


def names_read(kind: type) -> frozenset[str]:
    """The names that the code of a step may read from an object of this class."""
    found = _names.get(kind)
    if found is None:
        names: set[str] = set()
        for each in kind.__mro__:
            ours = is_ours(each)
            for name, member in vars(each).items():
                if name not in OTHER or (ours and name == "__init__"):  # functions of pydtconv read from layers, too
                    for part in (member, *(getattr(member, way, None) for way in _WAYS)):
                        names.update(_mentioned(getattr(part, "__code__", None)))
        found = _names[kind] = frozenset(name for name in names - _OWN if not name.startswith("_pydt_"))
    return found


def _mentioned(code: Any) -> set[str]:
    if not isinstance(code, types.CodeType):
        return set()
    return {*code.co_names}.union(*map(_mentioned, code.co_consts))


def note(layer: Any, name: str, value: Any) -> None:
    """The attribute is going to be set.  One that a trace has set (`self.calls += 1`) does not count any more."""
    old = layer.__dict__.get(name, _missing)
    if old is value or name not in names_read(type(layer)) or not (counts(value) or counts(old)):
        return
    if tracing.current() is not None:
        own = layer.__dict__.get("_pydt_set_by_itself", frozenset())
        if name not in own:
            object.__setattr__(layer, "_pydt_set_by_itself", own | {name})
            layer_tree.changed()
    elif not (counts(value) and counts(old)) or _told(old) != _told(value):
        layer_tree.changed()


def note_item(old: Any, value: Any) -> None:
    """An item of a list or a dict that is an attribute has been set."""
    if is_plain(value) and not (is_plain(old) and _told(old) == _told(value)):
        layer_tree.changed()


def of_model(model: Any) -> int:
    """A number for the values that steps of this model depend on, as a part of their key.

    It is a digest: values that change with each step, which are noted nowhere, do not fill the memory.
    """
    number: int = layer_tree.known(model, "settings", _number_of)
    return number


def _number_of(model: Any) -> int:
    found: list[tuple[Any, ...]] = []
    for place, layer in enumerate(model._pydt_flatten_layers()):
        values = vars(layer)
        found.append((place, "edits", int, repr(values.get("_pydt_edits", 0))))
        found.append((place, "policy", str, str(values.get("_pydt_dtype_policy"))))
        found.append((place, "trainable", bool, (layer.trainable, *(v.trainable for v in layer._pydt_own_variables()))))
        names = names_read(type(layer)).difference(values.get("_pydt_set_by_itself", ()))
        for name in sorted(names.intersection(values)):
            if counts(values[name]):
                found.append((place, name, _told(values[name])))
    return int.from_bytes(hashlib.blake2b(repr(found).encode(), digest_size=16).digest())
