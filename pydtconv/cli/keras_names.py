"""`keras` and `tensorflow.keras` as other names of pydtconv, for scripts that `pydtconv run` starts.

`install` puts a finder in front of Python's own.  Each module that it finds is an `Alias`: a module without contents
that takes its attributes from a module of pydtconv, shows only what is public there, and answers a missing name with an
error that names it and the nearest thing there is.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pydtconv._version import __version__
from pydtconv.utils.suggest import nearest

#: public modules of keras that are pydtconv's of the same name, as far as they are there
PUBLIC = (
    "activations",
    "applications",
    "backend",
    "callbacks",
    "config",
    "constraints",
    "datasets",
    "distribution",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "ops",
    "optimizers",
    "random",
    "regularizers",
    "saving",
    "tree",
    "utils",
)
#: public modules inside of these, apart from those in their `__all__`
NESTED = {"pydtconv.optimizers": ("schedules",)}
#: what serves instead of a name that nothing here is called like
INSTEAD = {
    "ImageDataGenerator": "keras.layers.RandomFlip and RandomCrop in the model, or a keras.utils.PyDataset",
    "preprocessing": "keras.utils and the layers Rescaling, RandomFlip, RandomCrop",
    "GradientTape": "Model.fit or Model.train_on_batch: pydtconv differentiates a planned graph",
    "data": "NumPy arrays, generators and keras.utils.PyDataset",
    "load_model": "Model.load_weights on a model built anew",
    "src": "the public names of keras (keras.src is private to Keras)",
    "wrappers": "a NumPy loop around Model.fit",
    "random": "numpy.random, keras.utils.set_random_seed, and the layers Dropout, RandomFlip, RandomCrop",
    **dict.fromkeys(
        ("LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional", "TimeDistributed", "Embedding", "MultiHeadAttention"),
        "Conv1D, Conv2D or Dense over a window: there are no recurrent, attention or text layers",
    ),
}
ROOTS = ("keras", "tf_keras", "tensorflow")


def missing(module: str, name: str, names: Iterable[str]) -> str:
    """What to say of a missing name: the name and the nearest things."""
    text = f"pydtconv has no {module}.{name}"
    near = nearest(name, names)
    if name in INSTEAD:
        return f"{text}; instead use {INSTEAD[name]}"
    return f"{text}; the nearest it has: {', '.join(f'{module}.{other}' for other in near)}" if near else text


class Alias(ModuleType):
    """A module that shows what a module of pydtconv has, or a table, or both; the table comes first."""

    def __init__(self, name: str, target: ModuleType | None, table: Mapping[str, Any]) -> None:
        super().__init__(name, target.__doc__ if target else None)
        self.__path__: list[str] = []  # a package, so that `from keras.layers import X` asks the finder for a missing X
        self._target = target
        self._table = table

    def __getattr__(self, name: str) -> Any:
        if name in self._table:
            return self._table[name]
        if is_module(self.__name__, name):
            return importlib.import_module(f"{self.__name__}.{name}")
        value = getattr(self._target, name, None) if not name.startswith("_") else None
        if value is None or isinstance(value, ModuleType):
            raise AttributeError(missing(self.__name__, name, dir(self)))
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self._table, *submodules(self.__name__), *public_names(self._target)})


def public_names(module: ModuleType | None) -> list[str]:
    """What a module means to export: `__all__`, else its names without underscore that are no modules."""
    if module is None:
        return []
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if _is_ours(value)]
    return [name for name in names if not name.startswith("_")]


def _is_ours(value: Any) -> bool:
    return not isinstance(value, ModuleType) and str(getattr(value, "__module__", "")).startswith("pydtconv")


def target_name(fullname: str) -> str | None:
    """pydtconv's name of a module of Keras; None for tensorflow's own modules."""
    words = fullname.split(".")
    if words[0] == "tensorflow":
        words = words[1:]
        if not words or words[0] != "keras":
            return None
    return ".".join(["pydtconv", *words[1:]])


@cache
def submodules(fullname: str) -> tuple[str, ...]:
    """The public modules in a module of Keras or tensorflow."""
    from pydtconv.cli import tensorflow_names

    name = target_name(fullname)
    if name is None:
        return tensorflow_names.submodules(fullname)
    if name == "pydtconv":
        return tuple(module for module in PUBLIC if importlib.util.find_spec(f"pydtconv.{module}"))
    target = importlib.import_module(name)
    candidates = [*getattr(target, "__all__", ()), *NESTED.get(name, ())]
    return tuple(item for item in candidates if isinstance(getattr(target, item, None), ModuleType))


def is_module(parent: str, name: str) -> bool:
    return name in submodules(parent)


class Finder(MetaPathFinder, Loader):
    """Finds and makes the aliases."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.split(".")[0] not in ROOTS:
            return None
        parent, _, name = fullname.rpartition(".")
        if parent and not is_module(parent, name):
            raise ImportError(missing(parent, name, dir(sys.modules[parent])), name=fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from pydtconv.cli import tensorflow_names

        name = target_name(spec.name)
        if name is None:
            return Alias(spec.name, None, tensorflow_names.table(spec.name))
        return Alias(spec.name, importlib.import_module(name), table(name))

    def exec_module(self, module: ModuleType) -> None:
        """An alias has nothing to execute."""


def table(name: str) -> dict[str, Any]:
    """Names of Keras that have a meaning only in a script that takes pydtconv for Keras."""
    from pydtconv.backend import backend

    if name == "pydtconv":
        return {"__version__": keras_version()}
    if name == "pydtconv.config":
        # tracebacks are never filtered, so there is nothing to switch off
        return {"backend": backend, "disable_traceback_filtering": lambda: None}
    return {}


def keras_version() -> str:
    """The version of Keras whose interface this is, with ours behind."""
    return f"3.0.0+pydtconv.{__version__}"


def install() -> None:
    """Makes keras and tensorflow names of pydtconv in this process.

    Raises RuntimeError when one of them is loaded already.
    """
    loaded = [name for name in ROOTS if name in sys.modules and not isinstance(sys.modules[name], Alias)]
    if loaded:
        raise RuntimeError(f"{', '.join(loaded)} was imported before pydtconv could take its place")
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    # TensorBoard's writer must not take our tensorflow for the real one; this module is its own switch for that
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))


def uninstall() -> None:
    """Takes back what `install` did and forgets the aliases."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]
    for name in [name for name, module in sys.modules.items() if isinstance(module, Alias)]:
        del sys.modules[name]
    sys.modules.pop("tensorboard.compat.notf", None)
