"""Near names for a wrong one, and what serves instead of a missing one, for errors that help."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

#: what serves instead of a name that nothing here is called like
INSTEAD = {
    "load_model": "Model.load_weights on a model built anew",
    "src": "the public names of keras (keras.src is private to Keras)",
    "wrappers": "a NumPy loop around Model.fit",
    **dict.fromkeys(("CuDNNLSTM", "CuDNNGRU"), "LSTM and GRU, which take the place of both"),
}


#: short names that people give to arguments, and their names here
_SHORT = {"lr": "learning_rate", "bs": "batch_size", "wd": "weight_decay"}


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names most like `name`, best first, whatever their case; none when nothing is like it."""
    import difflib  # which errors alone need

    by_lower: dict[str, str] = {}
    for candidate in names:
        by_lower.setdefault(candidate.lower(), candidate)
    meant = _SHORT.get(name.lower().strip("-"))
    if meant is not None:
        name = name.replace(name.strip("-"), meant if "-" not in name else meant.replace("_", "-"))
    matches = difflib.get_close_matches(name.lower(), by_lower, count, cutoff=0.55)
    if meant is not None and name in matches:
        return [name]
    return [by_lower[match] for match in matches]


def near(name: str, choices: Iterable[str]) -> str:
    """' Did you mean ...?' with the nearest choices, as a sentence of its own; empty where nothing is near."""
    found = nearest(name, choices)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ "; did you mean x or y?", or "" when nothing is like the name."""
    matches = nearest(name, names)
    return f"; did you mean {' or '.join(matches)}?" if matches else ""


#: names of a list that an error shows
_SHOWN = 12


def one_of(name: str, names: Iterable[str]) -> str:
    """What an unknown name may have been, as `did_you_mean`; else what there is, of many the first ones."""
    every = list(names)
    rest = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return did_you_mean(name, every) or f"; expected one of {', '.join(every[:_SHOWN])}{rest}"


def unknown_argument(where: str, name: str, *functions: Callable[..., Any]) -> str:
    """What to say of an argument that none of the functions has: its name, and the near ones."""
    known = [each for function in functions for each in inspect.signature(function).parameters]
    return f"{where}: unknown argument {name!r}{did_you_mean(name, [each for each in known if each != 'self'])}"


def constructors(cls: type) -> list[Callable[..., Any]]:
    """The constructors of a class and its bases."""
    return [vars(base)["__init__"] for base in cls.__mro__[:-1] if "__init__" in vars(base)]


def naming_arguments(function: _F) -> _F:
    """The function; for an argument that it does not have its TypeError names the near ones."""
    code = function.__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return function
    known = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not known.issuperset(kwargs):
            where = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
            raise TypeError(unknown_argument(where, next(name for name in kwargs if name not in known), function))
        return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def missing(module: str, name: str, names: Iterable[str], why: str | None = None) -> str:
    """What to say of a missing name: why it is not there (by default as `absent` has it), else the nearest things."""
    text = f"pydtconv has no {module}.{name}"
    if name in INSTEAD:
        return f"{text}; instead use {INSTEAD[name]}"
    from pydtconv.absent import reason  # which errors alone need

    why = why or reason(module, name)
    if why:
        return f"{text}: {why[0].lower()}{why[1:]}"
    near = nearest(name, names)
    return f"{text}; the nearest it has: {', '.join(f'{module}.{other}' for other in near)}" if near else text


class Refusing(MetaPathFinder):
    """Python's last finder of modules: what `from pydtconv.layers import GRU` says, where there is no such thing."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        parent, _, name = fullname.rpartition(".")
        if parent.split(".")[0] != "pydtconv" or any(part.startswith("_") for part in fullname.split(".")):
            return
        module = sys.modules.get(parent)
        if getattr(getattr(module, "__getattr__", None), "refuses", False) or parent == "pydtconv":
            names = getattr(module, "__all__", None) or (dir(module) if parent == "pydtconv" else own_names(module))
            if name in names:
                told = f"{fullname} is not where this pydtconv is"
                way = "expected an installed package, as 'pip install .' makes it, got one that was built in place"
                raise ModuleNotFoundError(f"{told}: {way}")
            # without a name: Python takes one that names the module for "there is no submodule", and says its own
            raise ModuleNotFoundError(missing(parent.removeprefix("pydtconv."), name, names))


def own_names(module: Any) -> list[str]:
    """The public names of a module that are not from elsewhere."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("pydtconv")
    ]


def refusal(module: str, names: Iterable[str] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a module of pydtconv: says what there is instead of a missing name.

    names: what there is, by default the public names that the module defines.
    """

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        there = own_names(sys.modules[module]) if names is None else names
        raise AttributeError(missing(module.removeprefix("pydtconv."), name, there))

    __getattr__.refuses = True  # type: ignore[attr-defined]
    refused = sys.modules.get(module)
    if refused is not None and not hasattr(refused, "__path__"):
        refused.__path__ = []  # as a package has, so that Python asks its finders for a missing name
    if not any(isinstance(finder, Refusing) for finder in sys.meta_path):
        sys.meta_path.append(Refusing())
    return __getattr__
