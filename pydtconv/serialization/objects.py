"""Objects as plain data and back, in the format that Keras 3 writes into `config.json`.

An object with `get_config` becomes {"module", "class_name", "config", "registered_name"}; built-in ones are written
under Keras's public module names, so that either library reads the other's files.
"""

from __future__ import annotations

import inspect
import threading
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from pydtconv import hooks
from pydtconv.dtypes import in_memory, name_of
from pydtconv.serialization import lambdas, registry
from pydtconv.serialization.budget import claim
from pydtconv.serialization.values import check_arguments, label

#: our modules and the public ones of Keras that hold the same classes
_PUBLIC = {
    "layers": "keras.layers",
    "initializers": "keras.initializers",
    "regularizers": "keras.regularizers",
    "constraints": "keras.constraints",
    "optimizers": "keras.optimizers",
    "losses": "keras.losses",
    "metrics": "keras.metrics",
    "activations": "keras.activations",
    "random": "keras.random",
}


#: the module of `FeatureSpace` and its parts
_TABLES = "feature_space"


class _Shared(threading.local):
    """Layers of what this thread is writing or reading, which may occur in it several times; None outside of that.

    written: (number, layer) by the layer's id.  read: layers by their numbers.
    """

    def __init__(self) -> None:
        self.written: dict[int, tuple[int, Any]] | None = None
        self.read: dict[int, Any] | None = None


_shared = _Shared()


def with_shared(describe: Callable[[], Any]) -> Any:
    """describe() as plain data, in which a layer that occurs in several places has the same number in each."""
    before, _shared.written = _shared.written, {}
    try:
        data = serialize_keras_object(describe())
    finally:
        _shared.written = before
    numbered = list(_numbered(data))
    counts = Counter(each["shared_object_id"] for each in numbered)
    for each in numbered:
        if counts[each["shared_object_id"]] == 1:
            del each["shared_object_id"]
    return data


def _numbered(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        if "shared_object_id" in data and "class_name" in data:
            yield data
        data = list(data.values())
    if isinstance(data, list):
        for item in data:
            yield from _numbered(item)


@contextmanager
def reading_shared() -> Iterator[None]:
    """Inside, what has the same number becomes one object."""
    before, _shared.read = _shared.read, {}
    try:
        yield
    finally:
        _shared.read = before


def serialize_keras_object(obj: Any) -> Any:
    """obj as plain data that `json` can write.  Raises ValueError for what has no get_config()."""
    if obj is None or isinstance(obj, (str, bool, int, float)):
        return obj
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, (list, tuple)):
        items = [serialize_keras_object(item) for item in obj]
        return tuple(items) if isinstance(obj, tuple) else items
    if isinstance(obj, dict):
        return {key: serialize_keras_object(item) for key, item in obj.items()}
    if isinstance(obj, bytes):
        return {"class_name": "__bytes__", "config": {"value": obj.decode()}}
    if isinstance(obj, np.ndarray):
        return {"class_name": "__numpy__", "config": {"value": obj.tolist(), "dtype": obj.dtype.name}}
    if isinstance(obj, slice):
        parts = {"start": obj.start, "stop": obj.stop, "step": obj.step}
        return {"class_name": "__slice__", "config": serialize_keras_object(parts)}
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(obj, types.FunctionType):
        return _serialize_function(obj)
    if inspect.isclass(obj):
        return {"class_name": "__typespec__", "module": obj.__module__, "config": obj.__name__}
    if not hasattr(obj, "get_config"):
        raise ValueError(f"cannot save {obj!r}: {type(obj).__name__} has no get_config()")
    cls = type(obj)
    data = {
        "module": _module_of(cls),
        "class_name": cls.__dict__.get("_keras_name", cls.__name__),
        "config": serialize_keras_object(obj.get_config()),
        "registered_name": registry.get_registered_name(cls) if _module_of(cls) == cls.__module__ else None,
    }
    build_config = obj.get_build_config() if hasattr(obj, "get_build_config") else None
    if build_config:
        data["build_config"] = serialize_keras_object(build_config)
    if _shared.written is not None and hasattr(obj, "get_build_config"):
        data["shared_object_id"], _ = _shared.written.setdefault(id(obj), (len(_shared.written) + 1, obj))
    return data


def _serialize_function(function: types.FunctionType) -> Any:
    if function in registry.NAMED:
        return function.__name__
    if lambdas.is_lambda(function):
        held = lambda_as_data(function)
        if held is not None:
            parts = [held["config"][part] for part in ("code", "defaults", "closure")]
            return {"class_name": "__lambda__", "config": {"value": parts, "python": lambdas.PYTHON}}
    elif "<locals>" in function.__qualname__ and registry.get_registered_name(function) == function.__name__:
        _only_its_name(function)
    return {
        "module": "builtins",
        "class_name": "function",
        "config": function.__name__,
        "registered_name": registry.get_registered_name(function),
    }


def lambda_as_data(function: types.FunctionType) -> dict[str, Any] | None:
    """A lambda as Keras's Lambda layer has it in its config; None, with a warning, if its closure cannot be saved."""
    try:
        parts = {name: serialize_keras_object(part) for name, part in lambdas.dumped(function).items()}
    except ValueError:  # code or values of the closure
        _only_its_name(function)
        return None
    return {"class_name": "__lambda__", "config": parts}


def _only_its_name(function: types.FunctionType) -> None:
    warnings.warn(
        f"the code of the function {function.__qualname__} is not saved, only its name: who loads the file passes "
        f"custom_objects={{{function.__name__!r}: ...}}",
        UserWarning,
        stacklevel=3,
    )


def _module_of(cls: type) -> str:
    parts = cls.__module__.split(".")
    if parts[0] != "pydtconv" or len(parts) < 2:
        return cls.__module__
    if parts[-1] == _TABLES:
        return "keras.utils" if cls.__name__ == "FeatureSpace" else f"keras.src.layers.preprocessing.{_TABLES}"
    if parts[1] == "models":
        return "keras.models" if cls.__name__ == "Sequential" else "keras.src.models.functional"
    if parts[1] == "applications" and registry.get_registered_name(cls) == cls.__name__:
        return ".".join(["keras.src", *parts[1:]])  # layers that Keras's networks define for themselves
    if parts[1:3] == ["optimizers", "schedules"]:
        return "keras.optimizers.schedules"
    return _PUBLIC.get(parts[1], cls.__module__)


def deserialize_keras_object(
    config: Any, custom_objects: Mapping[str, Any] | None = None, safe_mode: bool = True
) -> Any:
    """The reverse of `serialize_keras_object`.  Plain data comes back as it is.

    Classes are looked up among custom_objects, registered objects and pydtconv's own; nothing else is imported.
    safe_mode: whether the code of lambda functions in the config is refused.
    """
    unsafe = nullcontext() if safe_mode else lambdas.safe_mode_scope(False)
    with registry.custom_object_scope(custom_objects or {}), unsafe, lambdas.reading():
        return _deserialize(config)


def _deserialize(config: Any) -> Any:
    if isinstance(config, list):
        return [_deserialize(item) for item in config]
    if not isinstance(config, dict):
        return config
    if "class_name" not in config or "config" not in config:
        return {key: _deserialize(value) for key, value in config.items()}
    name, inner = config["class_name"], config["config"]
    if name in ("__numpy__", "__tensor__"):
        return _array(inner)
    if name == "__tuple__":
        return tuple(_deserialize(item) for item in inner)
    if name == "__slice__":
        return slice(*(_deserialize(inner[part]) for part in ("start", "stop", "step")))
    if name == "__ellipsis__":
        return Ellipsis
    if name == "__bytes__":
        return inner["value"].encode()
    if name == "__lambda__":
        known = registry.get_registered_object("<lambda>")
        return known or lambdas.function_of(_deserialize(dict(inner)), registry.objects_in_scope())
    if name in ("DTypePolicy", "FloatDTypePolicy"):
        return inner["name"]
    if name == "function":
        return find_object(config.get("registered_name") or inner, inner, config.get("module"))
    number, read = config.get("shared_object_id"), _shared.read
    if isinstance(number, int) and read is not None and number in read:
        return read[number]
    cls = find_object(config.get("registered_name") or name, name, config.get("module"))
    if not inspect.isclass(cls):
        raise ValueError(f"expected {name!r} to be a class, got a {type(cls).__name__}")
    obj = made(cls, inner)
    build_config = config.get("build_config")
    if build_config and hasattr(obj, "build_from_config"):
        obj.build_from_config({key: _as_shapes(value) for key, value in build_config.items()})
    if isinstance(number, int) and read is not None:
        read[number] = obj
    return obj


def made(cls: Any, config: Any) -> Any:
    """The object of a class with these arguments.

    Raises ValueError for those that are checked before (values.py), and where the constructor of a class of ours raises
    it, with the names of class and object.
    """
    if not isinstance(config, dict):
        raise ConfigError(f"{cls.__name__}: expected an object with arguments, got {config!r:.80}")
    check_arguments(cls, config)
    with naming(cls, config):
        return cls.from_config(dict(config)) if hasattr(cls, "from_config") else cls(**config)


@contextmanager
def naming(target: Any, config: Mapping[str, Any]) -> Iterator[None]:
    """Errors from inside name the class or function of ours that is used; those of others, and of models, are left."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        if not _is_of_ours(target) or isinstance(error, UnusableError):
            raise
        name, told = label(target, config), str(error).removeprefix(f"{target.__name__}: ")
        raise UnusableError(told if told.startswith(name) else f"{name}: {told}") from error


class ConfigError(TypeError, ValueError):
    """A config of which no object can be made; Keras raises the one class or the other."""


class UnusableError(ConfigError):
    """Arguments in a config of which no object of ours can be made; the text names it."""


def _is_of_ours(cls: Any) -> bool:
    return cls.__module__.startswith("pydtconv.") and not cls.__module__.startswith("pydtconv.models.")


def _array(config: Any) -> np.ndarray:
    """The array of a nested list and the name of a dtype."""
    kind = in_memory(name_of(config["dtype"]))
    array = np.array(config["value"])
    claim(array.size * kind.itemsize, f"an array of {array.size} elements of {config['dtype']}")
    return array.astype(kind)


def arguments_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a config, with the objects in place of what `serialize_keras_object` wrote of them."""
    return {key: _argument_of(value) for key, value in config.items()}


def _argument_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_argument_of(item) for item in value]
    if isinstance(value, dict) and "class_name" in value:
        written = "module" in value or str(value["class_name"]).startswith("__")
        return _deserialize(value) if written else value
    return _deserialize(value)


def _as_shapes(value: Any) -> Any:
    """Lists of extents, as JSON has them, as tuples."""
    value = _deserialize(value)
    if isinstance(value, list):
        parts = [_as_shapes(item) for item in value]
        return tuple(parts) if all(part is None or isinstance(part, int) for part in parts) else parts
    return value


def find_object(registered_name: str, name: str, module: str | None = None) -> Any:
    """The class or function of a name.  Raises ConfigError saying how to make an unknown one known."""
    if not all(isinstance(part, str) for part in (registered_name, name, module or "")):
        raise ConfigError(f"expected the names of a class and its module, got {name!r} and {module!r}")
    for key in (registered_name, name):
        found = registry.get_registered_object(key)
        if found is not None:
            return found
    found = _built_in((module or "").split("."), name)
    if found is not None:
        if registered_name not in (name, "function"):
            raise ConfigError(
                f"registered_name: expected none of {name!r}, which is one of pydtconv's own, got {registered_name!r}"
            )
        return found
    found = registry.of_a_package(name) if module == "builtins" else None  # as Keras wrote functions before 3.7
    if found is not None:
        return found
    raise ConfigError(
        f"unknown class or function {name!r} (of module {module!r}): pass custom_objects={{{name!r}: ...}}, or "
        "decorate it with pydtconv.saving.register_keras_serializable()"
    )


def _built_in(parts: list[str], name: str) -> Any:
    """The class or function of ours of this name in a module; None where there is none."""
    if parts[0] not in ("keras", "pydtconv", "builtins"):
        return None
    found = _of_a_network(parts, name)
    if found is None and (parts[-1] == _TABLES or (parts[-1], name) == ("utils", "FeatureSpace")):
        found = getattr(hooks.public_room("utils").feature_space, name, None)
        found = found if _is_public("utils", found) else None
    if found is not None:
        return found
    if "schedules" in parts:
        found = getattr(hooks.public_room("optimizers").schedules, name, None)
        if _is_public("schedules", found):
            return found
    ours = next((part for part in parts if part in _PUBLIC), None)
    rooms = ((place, hooks.public_room(place)) for place in ([ours] if ours else ["models", *_PUBLIC]))
    return next((getattr(room, name) for place, room in rooms if _is_public(place, getattr(room, name, None))), None)


def _of_a_network(parts: list[str], name: str) -> Any:
    """The class that a module of `applications` defines for its networks; None where there is none."""
    if "applications" not in parts[:-1]:
        return None
    module = getattr(hooks.public_room("applications"), parts[-1], None) if parts[-1].isidentifier() else None
    found = getattr(module, name, None) if inspect.ismodule(module) else None
    own = inspect.isclass(found) and found.__module__ == f"pydtconv.applications.{parts[-1]}"
    return found if own and not name.startswith("_") else None


def _is_public(place: str, found: Any) -> bool:
    """Whether a file may name it: a class of the package, or a function of activations, losses and metrics."""
    if not getattr(found, "__module__", "").startswith("pydtconv.") or found.__name__.startswith("_"):
        return False
    if inspect.isclass(found):
        return True
    return place in ("activations", "losses", "metrics") and found.__name__ not in _HELPERS


#: functions beside them that are no activation, loss or metric
_HELPERS = ("deserialize", "get", "serialize")
