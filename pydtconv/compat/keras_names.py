"""`keras` and `tensorflow.keras` as other names of pydtconv, for scripts that `pydtconv run` starts.

`install` puts a finder in front of Python's own.  Each module that it finds is an `Alias`: a module without contents
that takes its attributes from a module of pydtconv, shows only what is public there, and answers a missing name with an
error that names it and the nearest thing there is.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from pydtconv import dtype_policies
from pydtconv._version import __version__
from pydtconv.compat import foreign_styles, keras2
from pydtconv.compat.keras2 import modules as old_modules
from pydtconv.suggest import missing

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
    "dtype_policies",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "ops",
    "optimizers",
    "preprocessing",
    "random",
    "regularizers",
    "saving",
    "tree",
    "utils",
)
#: public modules inside of these, apart from those in their `__all__`
NESTED = {
    "pydtconv.applications": (
        "convnext", "densenet", "efficientnet", "efficientnet_v2", "imagenet_utils", "inception_resnet_v2",
        "inception_v3", "mobilenet", "mobilenet_v2", "mobilenet_v3", "nasnet", "resnet", "resnet50", "resnet_v2",
        "vgg16", "vgg19", "xception",
    ),
    "pydtconv.optimizers": ("schedules",),
    "pydtconv.ops": ("image", "linalg", "nn", "numpy"),
    "pydtconv.utils": ("bounding_boxes",),
}  # fmt: skip
ROOTS = ("keras", "tf_keras", "tensorflow", "keras_preprocessing", "keras_applications")


class Alias(ModuleType):
    """A module that shows what a module of pydtconv has, or a table, or both; the table comes first."""

    def __init__(self, name: str, target: ModuleType | None, table: Mapping[str, Any]) -> None:
        super().__init__(name, target.__doc__ if target else None)
        self.__path__: list[str] = []  # a package, so that `from keras.layers import X` asks the finder for a missing X
        self._target = target
        self._table = table

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # for `from keras.layers import *`
            return [each for each in dir(self) if not each.startswith("_")]
        if name in self._table:
            return self._table[name]
        if is_module(self.__name__, name) or is_old_module(f"{self.__name__}.{name}"):
            return importlib.import_module(f"{self.__name__}.{name}")
        value = getattr(self._target, name, None) if not name.startswith("_") else None
        if value is None or isinstance(value, ModuleType):
            raise AttributeError(_missing(self.__name__, name, dir(self)))
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Of a name that was a function, then a module, as `keras.layers.merge`."""
        if "__call__" not in self._table:
            raise TypeError(f"{self.__name__!r} is a module, which cannot be called")
        return self._table["__call__"](*args, **kwargs)

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
    words = (old_modules.present(fullname) or fullname).split(".")
    if words[0] == "tensorflow":
        words = words[1:]
        if not words or words[0] != "keras":
            return None
    name = ".".join(["pydtconv", *words[1:]])
    if name == "pydtconv.utils.bounding_boxes":
        return "pydtconv.layers.preprocessing.boxes"
    return name


@cache
def submodules(fullname: str) -> tuple[str, ...]:
    """The public modules in a module of Keras or tensorflow."""
    from pydtconv.compat import tensorflow_names

    name = target_name(fullname)
    if name is None:
        return tensorflow_names.submodules(fullname)
    if old_modules.is_gone(name):
        return ()
    if name == "pydtconv":
        return tuple(module for module in PUBLIC if importlib.util.find_spec(f"pydtconv.{module}"))
    target = importlib.import_module(name)
    candidates = [*getattr(target, "__all__", ()), *NESTED.get(name, ())]
    found = (item for item in candidates if isinstance(getattr(target, item, None), ModuleType))
    return (*found, *old_modules.GONE.get(name, ()))


def _missing(module: str, name: str, names: list[str]) -> str:
    """What to say of a missing name, with the reason where tensorflow has it and pydtconv does not."""
    from pydtconv.compat.tensorflow import refused

    return missing(module, name, names, refused.reason(module, name, names))


def is_module(parent: str, name: str) -> bool:
    return name in submodules(parent)


def is_old_module(fullname: str) -> bool:
    """Whether it is a module of Keras 1 or 2, whose names are in one of Keras 3 now."""
    parent, _, name = (old_modules.present(fullname) or "").rpartition(".")
    return bool(name) and (not parent or is_module(parent, name))


class Finder(MetaPathFinder, Loader):
    """Finds and makes the aliases."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.split(".")[0] not in ROOTS:
            return None
        parent, _, name = fullname.rpartition(".")
        if parent and not is_module(parent, name) and not is_old_module(fullname):
            raise ImportError(_missing(parent, name, dir(sys.modules[parent])), name=fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from pydtconv.compat import tensorflow_names

        name = target_name(spec.name)
        if name == "pydtconv":
            foreign_styles.look_at_backend()
        if name is None:
            return Alias(spec.name, None, tensorflow_names.table(spec.name))
        names = {**old_modules.names(name), **table(name), **old_modules.moved(spec.name)}
        return Alias(spec.name, None if old_modules.is_gone(name) else importlib.import_module(name), names)

    def exec_module(self, module: ModuleType) -> None:
        """An alias has nothing to execute."""


def table(name: str) -> dict[str, Any]:
    """Names of Keras that have a meaning only in a script that takes pydtconv for Keras."""
    from pydtconv.compat.keras_backend import backend

    if name == "pydtconv":
        return {"__version__": keras_version(), "version": keras_version}
    if name in ("pydtconv.utils", "pydtconv.preprocessing"):
        from pydtconv.compat.tensorflow import folder

        names = ("image_dataset_from_directory", "text_dataset_from_directory", "timeseries_dataset_from_array")
        return {each: getattr(folder, each) for each in names}
    if name == "pydtconv.backend":
        from pydtconv.compat import keras_backend

        return {**keras_backend.table(), "tf": importlib.import_module("tensorflow")}
    if name in ("pydtconv.losses", "pydtconv.metrics"):
        return _old_losses()
    if name == "pydtconv.config":
        return {"backend": backend, **_of_config()}
    return {}


class Reduction:
    """Names of the reductions of losses."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"


def _old_losses() -> dict[str, Any]:
    """Short names of losses that Keras 3 still gives in `tensorflow.keras`."""
    from pydtconv import losses

    short = {
        "MSE": losses.mean_squared_error, "MAE": losses.mean_absolute_error, "KLD": losses.kl_divergence,
        "MAPE": losses.mean_absolute_percentage_error, "MSLE": losses.mean_squared_logarithmic_error,
    }  # fmt: skip
    lower = {name.lower(): function for name, function in short.items()}
    return {**short, **lower, "logcosh": losses.log_cosh, "Reduction": Reduction}


def _of_config() -> dict[str, Any]:
    """Settings of Keras that are always as they are here: tracebacks are whole."""
    from pydtconv import utils

    def refused(name: str, why: str) -> Any:
        def function(*_: Any) -> NoReturn:
            raise NotImplementedError(f"keras.config.{name}: {why}")

        return function

    logging = ("disable_interactive_logging", "enable_interactive_logging", "is_interactive_logging_enabled")
    return {
        "disable_traceback_filtering": lambda: None,
        "is_traceback_filtering_enabled": lambda: False,
        "enable_traceback_filtering": refused("enable_traceback_filtering", "tracebacks are always whole"),
        "set_backend": refused("set_backend", "there is one backend, pydtconv"),
        **{name: getattr(utils, name) for name in logging},
    }


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
        keras2.install()
    foreign_styles.install()
    dtype_policies.STANDS_FOR["mixed_float16"] = "mixed_bfloat16"
    # TensorBoard's writer must not take our tensorflow for the real one; this module is its own switch for that
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))


def uninstall() -> None:
    """Takes back what `install` did and forgets the aliases."""
    keras2.uninstall()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Finder)]
    for name in [name for name, module in sys.modules.items() if isinstance(module, Alias)]:
        del sys.modules[name]
    foreign_styles.uninstall()
    dtype_policies.STANDS_FOR.clear()
    sys.modules.pop("tensorboard.compat.notf", None)
