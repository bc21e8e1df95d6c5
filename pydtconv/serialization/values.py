"""The values that a config may hold, checked before anything is made of them.

`check_document` looks at all values of a file.  `check_arguments` looks at those of one class or function of ours: what
an argument may be follows from its annotation or its name.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydtconv import hooks
from pydtconv.serialization import registry

#: levels of lists and objects; extents and other counts; any integer
DEPTH, COUNT, INTEGER = 200, 1 << 31, 1 << 64
#: axes of an array, at most
AXES = 64

#: settings of functions that have no annotations, by name
_SETTINGS = {
    **dict.fromkeys(("axis", "axes"), "int | Sequence[int] | Sequence[Sequence[int]]"),
    **dict.fromkeys(("axis1", "axis2", "k", "kth", "num_classes", "num_segments", "block_size", "offset"), "int"),
    **dict.fromkeys(("shape", "shift", "repeats", "size", "strides", "dilation", "output_size"), "int | Sequence[int]"),
    **dict.fromkeys(("nan", "posinf", "neginf", "x_min", "x_max", "tol", "rcond"), "float"),
    **dict.fromkeys(("mode", "method", "dtype", "data_format", "interpolation", "fill_mode"), "str"),
    "keepdims": "bool",
    "bins": "Sequence[float]",
    "start_indices": "Sequence[int]",
    "learning_rate": "float | LearningRateSchedule",
    **dict.fromkeys(("x1", "x2"), "Array | None"),
    "q": "float | Sequence[float]",
}

_OF_JSON = (str, int, float, list, tuple, dict)
#: objects that stand for plain values, by their class names
_PLAIN = frozenset({"__numpy__", "__tensor__", "__tuple__", "__slice__", "__ellipsis__", "__keras_tensor__"})
#: arguments that are no counts: any integer
_ANY_INTEGER = ("seed", "salt", "mask_token", "oov_token", "ignore_class", "dynamic_growth_steps")
#: the room of the class that an argument of this ending names
_ROOMS = {"_initializer": "initializers", "_regularizer": "regularizers", "_constraint": "constraints"}


def parsed(text: str | bytes) -> Any:
    """The values of a JSON text.  Raises ValueError for one that `check_document` refuses."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError(f"expected lists and objects nested {DEPTH} deep at most") from None
    check_document(data)
    return data


def check_document(data: Any) -> None:
    """Raises ValueError, with the value's place, where a number has more than 64 bits or lists are nested too deep."""
    left: list[tuple[Any, tuple[Any, ...]]] = [(data, ())]
    while left:
        value, place = left.pop()
        if isinstance(value, (dict, list)):
            if len(place) >= DEPTH:
                raise ValueError(f"{_told(place)}: expected lists and objects nested {DEPTH} deep at most")
            items = value.items() if isinstance(value, dict) else enumerate(value)
            left.extend((item, (*place, key)) for key, item in items if not isinstance(item, str))
        elif isinstance(value, int) and not -INTEGER < value < INTEGER:
            raise ValueError(f"{_told(place)}: expected a number of 64 bits, got {reprlib.repr(value)}")


def _told(place: tuple[Any, ...]) -> str:
    names = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in place[:12]]
    return "".join(names).removeprefix(".") + ("..." if len(place) > 12 else "")


def check_arguments(target: Any, config: Mapping[str, Any]) -> None:
    """Raises ValueError that names class or function, argument and value, for a value that an argument cannot have.

    target: a class or a function; only those of ours are checked.
    """
    known = _arguments(target)
    for name, value in config.items():
        if name in known and not known[name].takes(name, value):
            limit = f" below {AXES}" if name == "axis" else "" if name in _ANY_INTEGER else " below 2**31"
            told = known[name].kinds.replace("int", f"int{limit}")
            raise ValueError(f"{label(target, config)}: {name}: expected {told}, got {reprlib.repr(value)}")


def label(target: Any, config: Mapping[str, Any]) -> str:
    """How errors call what is made of a config."""
    name = config.get("name")
    return f"{target.__name__} {name!r}" if isinstance(name, str) else target.__name__


class _Argument(NamedTuple):
    """kinds: what it may be, as an annotation has it.  plain: without objects.  optional: whether it may be None."""

    kinds: str
    plain: bool
    optional: bool

    def takes(self, name: str, value: Any) -> bool:
        if value is None:
            return self.optional
        if not isinstance(value, _OF_JSON) or (
            isinstance(value, dict) and value.get("class_name") == "__keras_tensor__"
        ):
            return True  # an object that is there already, of no file, or a tensor of the graph
        refused = self.plain and ("Callable" in self.kinds or not _is_plain(value))
        return not refused and _fits(self.kinds, name, value)


@functools.cache
def _arguments(target: Any) -> dict[str, _Argument]:
    """The arguments of a class or function of ours: those of its bases, too."""
    if not target.__module__.startswith("pydtconv."):
        return {}
    plain = not inspect.isclass(target) or dataclasses.is_dataclass(target)
    owners: list[Any] = [target]
    if inspect.isclass(target):
        bases: list[Any] = [cls for cls in target.__mro__ if cls.__module__.startswith("pydtconv.")]
        owners = [cls.__init__ for cls in bases if "__init__" in vars(cls)]
    found: dict[str, _Argument] = {}
    for owner in owners:
        for name, each in inspect.signature(owner).parameters.items():
            kinds = _kinds_of(each, plain)
            needed = each.default is not None
            optional = not needed or bool({"None", "Any"} & set(_alternatives(kinds))) or kinds in _ROOMS.values()
            found.setdefault(name, _Argument(kinds, plain, optional))
    return found


def _kinds_of(parameter: inspect.Parameter, plain: bool) -> str:
    """What an argument may be, by its annotation; without one, which functions of tables have not, by name or default.

    plain: whether it is of a function or an operator, which takes text only where it says so.
    """
    name, given = parameter.name, parameter.annotation
    room = next((room for end, room in _ROOMS.items() if name.endswith(end)), None)
    if room is not None or (isinstance(given, str) and given != "Any"):
        return room or given
    kinds = _SETTINGS.get(name) if plain or name in ("axis", "learning_rate") else None
    if kinds is None and plain:
        is_word = isinstance(parameter.default, (bool, int, float, str))
        kinds = type(parameter.default).__name__ if is_word else None
        kinds = "Array" if parameter.default is parameter.empty else kinds
    return kinds or "Any"


def _fits(kinds: str, name: str, value: Any) -> bool:
    """Whether a value is one of several kinds."""
    if kinds in _ROOMS.values():
        return isinstance(value, str) or (isinstance(value, dict) and _is_of(kinds, value))
    if isinstance(value, dict) and value.get("class_name") in ("__numpy__", "__tensor__", "__tuple__"):
        held = value.get("config")
        value = held if value["class_name"] == "__tuple__" or not isinstance(held, dict) else held.get("value")
    return any(_is_a(kind, name, value) for kind in _alternatives(kinds))


def _is_a(kind: str, name: str, value: Any) -> bool:
    """Whether a value is of a kind, as annotations have it."""
    if kind.startswith(("Sequence[", "tuple[")) and isinstance(value, (list, tuple)):
        inner = kind[kind.index("[") + 1 : -1]
        parts = [part.strip() for part in _split(inner, ",")]
        if len(parts) == 1 or parts[-1] == "...":
            return all(each is None or _fits(parts[0], name, each) for each in value)
        return len(parts) == len(value) and all(
            _fits(part, name, each) for part, each in zip(parts, value, strict=True)
        )
    check = _KINDS.get(kind)
    return check(name, value) if check is not None else not kind.startswith(("Sequence[", "tuple["))


def _integer(name: str, value: Any) -> bool:
    limit = INTEGER if name in _ANY_INTEGER else AXES if name == "axis" else COUNT
    return isinstance(value, int) and not isinstance(value, bool) and -limit < value < limit


def _number(name: str, value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


#: kinds by the words of annotations; those that are not here, such as classes, are left to who takes them
_KINDS: dict[str, Callable[[str, Any], bool]] = {
    "None": lambda name, value: value is None,
    "Padding": lambda name, value: _fits("str | Sequence[Sequence[int]]", name, value),
    "Algorithm": lambda name, value: _fits("str | Sequence[Sequence[str]]", name, value),
    **dict.fromkeys(("Halo", "Within", "Boxes"), lambda name, value: False),  # of the runtime's own operators
    **dict.fromkeys(("LearningRateSchedule", "SeedGenerator"), lambda name, value: isinstance(value, dict)),
    "Array": lambda name, value: not isinstance(value, str),
    "Any": lambda name, value: True,
    "bool": lambda name, value: isinstance(value, bool) or value in (0, 1),
    "int": _integer,
    "float": _number,
    "str": lambda name, value: isinstance(value, str),
}


@functools.cache
def _alternatives(annotation: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _split(annotation, "|"))


def _split(text: str, sign: str) -> list[str]:
    """The parts of an annotation between signs that stand in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == sign and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _is_of(room: str, data: Mapping[str, Any]) -> bool:
    """Whether it describes an object of a room of ours, or one of others, of which `find_object` knows."""
    name, module = data.get("class_name"), data.get("module") or "keras"
    if not isinstance(name, str) or not isinstance(module, str):
        return False
    names = (data.get("registered_name"), name)
    if any(isinstance(key, str) and registry.get_registered_object(key) is not None for key in names):
        return True
    parts = module.split(".")
    of_ours = parts[0] in ("keras", "pydtconv", "builtins") and name not in ("function", "__lambda__", *_PLAIN)
    return not of_ours or room in parts or (len(parts) == 1 and hasattr(hooks.public_room(room), name))


def _is_plain(value: Any) -> bool:
    """Whether no class or function is named in it."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if "class_name" in part and part["class_name"] not in _PLAIN:
                return False
            left.extend(part.values())
        elif isinstance(part, (list, tuple)):
            left.extend(part)
    return True
