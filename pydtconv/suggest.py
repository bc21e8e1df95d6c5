"""Near names for a wrong one, and what serves instead of a missing one, for errors that help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn

#: what serves instead of a name that nothing here is called like
INSTEAD = {
    "TFRecordDataset": "tf.data.Dataset.from_generator, or a keras.utils.PyDataset",
    **dict.fromkeys(
        ("parallel_interleave", "window", "group_by_window", "rejection_resample"),
        "tf.data.Dataset.from_generator with a Python generator that does it",
    ),
    "choose_from_datasets": "from_generator",
    "snapshot": "cache",
    "load_model": "Model.load_weights on a model built anew",
    "src": "the public names of keras (keras.src is private to Keras)",
    "wrappers": "a NumPy loop around Model.fit",
    **dict.fromkeys(
        ("LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional"),
        "MultiHeadAttention, or Conv1D or Dense over a window: there are no recurrent layers",
    ),
}


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names most like `name`, best first, whatever their case; none when nothing is like it."""
    import difflib  # which errors alone need

    by_lower: dict[str, str] = {}
    for candidate in names:
        by_lower.setdefault(candidate.lower(), candidate)
    matches = difflib.get_close_matches(name.lower(), by_lower, count, cutoff=0.55)
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


def missing(module: str, name: str, names: Iterable[str]) -> str:
    """What to say of a missing name: the name and the nearest things."""
    text = f"pydtconv has no {module}.{name}"
    near = nearest(name, names)
    if name in INSTEAD:
        return f"{text}; instead use {INSTEAD[name]}"
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
