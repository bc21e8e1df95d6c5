"""Configs of objects: the constructor's arguments as plain data.

A built-in class is decorated with `builtin`, which notes the names of its constructor's arguments; each is also an
attribute.  For other classes the arguments of the constructor call are recorded, so that they need no `get_config`.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object

C = TypeVar("C", bound=type)

#: arguments that Layer itself puts into the config
_BASE = frozenset({"self", "args", "kwargs", "name", "trainable", "dtype", "autocast", "activity_regularizer"})


class _OfConstructor:
    """The signature of a class is that of its constructor; `__new__`, which takes anything, would hide it."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        own = inspect.signature(owner.__init__)
        return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=inspect.Signature.empty)


class Configurable:
    """get_config by noted or recorded arguments, from_config by calling the class."""

    __signature__ = _OfConstructor()
    _pydt_config_fields: tuple[str, ...] = ()
    #: arguments of the constructor that the config has not
    _pydt_not_in_config: tuple[str, ...] = ()
    _pydt_recorded: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = super().__new__(cls)
        object.__setattr__(instance, "_pydt_recorded", (args, kwargs))
        return instance

    def _pydt_own_config(self) -> dict[str, Any]:
        """The part of the config that is the class's own."""
        cls: Any = type(self)
        fields = {name: getattr(self, name) for name in cls._pydt_config_fields}
        init_owner = next(c for c in cls.__mro__ if "__init__" in c.__dict__)
        if "_pydt_config_fields" not in init_owner.__dict__ and _keeps_base_config(cls):
            return self._pydt_recorded_config()
        return {name: _as_config(value) for name, value in fields.items()}

    def _pydt_recorded_config(self) -> dict[str, Any]:
        """The arguments of the constructor call, and the defaults of the others where these are plain data.

        Raises NotImplementedError, as Keras does, for arguments that have no name or cannot be saved.
        """
        signature = inspect.signature(type(self).__init__)
        instance, *parameters = signature.parameters.values()
        args, kwargs = self._pydt_recorded
        given, kind = dict(signature.bind(self, *args, **kwargs).arguments), type(self).__name__
        of_user = not type(self).__init__.__module__.startswith("pydtconv.")
        del given[instance.name]
        for each in parameters:
            if each.kind in (each.VAR_POSITIONAL, each.POSITIONAL_ONLY) and each.name in given:
                raise NotImplementedError(f"{kind}: {each.name}: has no name in a config: write get_config()")
            if each.kind is each.VAR_KEYWORD:
                given.update(given.pop(each.name, {}))
            elif of_user and isinstance(each.default, (bool, int, float, str, type(None))):
                given.setdefault(each.name, each.default)
        try:
            return {name: _as_config(value) for name, value in given.items() if name not in _BASE}
        except ValueError as error:
            raise NotImplementedError(f"{kind}: {error}: write get_config()") from error

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """An object of this class made of a config."""
        known = {*inspect.signature(cls.__init__).parameters, *_BASE}
        # Keras writes arguments that we do not have, too; None is "not used"
        config = {key: value for key, value in config.items() if value is not None or key in known}
        return cls(**{key: deserialize_keras_object(value) for key, value in config.items()})


def _as_config(value: Any) -> Any:
    """An argument as plain data; tuples of numbers stay tuples, as in Keras's configs."""
    if isinstance(value, tuple) and all(each is None or isinstance(each, (int, float, str, tuple)) for each in value):
        return tuple(map(_as_config, value))
    return serialize_keras_object(value)


def _keeps_base_config(cls: Any) -> bool:
    owner = next(c for c in cls.__mro__ if "get_config" in c.__dict__)
    return owner.__module__.startswith("pydtconv.")


def builtin(cls: C) -> C:
    """Notes the names of the constructor's arguments as the fields of the config."""
    names = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    left_out = {*_BASE, *getattr(cls, "_pydt_not_in_config", ())}
    fields = [name for name in names if name not in left_out]
    known = [name for name in getattr(cls, "_pydt_config_fields", ()) if name not in left_out]
    inherited = [name for name in known if name not in names and "kwargs" in names]
    cls._pydt_config_fields = (*inherited, *fields)  # type: ignore[attr-defined]
    return cls
