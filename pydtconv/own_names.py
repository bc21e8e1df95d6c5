"""Names in objects of users' classes: those that begin with `_pydt_` are the package's, all others are the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv.suggest import naming_arguments

PREFIX = "_pydt_"


class OwnNames:
    """Base of the classes that users subclass and that keep something of the package's own."""

    #: attributes that older pickles have without the prefix
    _pydt_former: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        taken = [name for name in vars(cls) if name.startswith(PREFIX)]
        if taken and cls.__module__.partition(".")[0] != "pydtconv":
            raise TypeError(f"class {cls.__name__}: {reserved(taken[0])}")
        if "__init__" in vars(cls) and cls.__module__.partition(".")[0] == "pydtconv":
            cls.__init__ = naming_arguments(cls.__init__)  # type: ignore[method-assign]

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        if not any(name.startswith(PREFIX) for name in state):
            former = {"_" + name.removeprefix(PREFIX): name for name in self._pydt_former}
            state = {former.get(name, name): value for name, value in state.items()}
        self.__dict__.update(state)


class KerasName:
    """A private name that code written for Keras reads; unlike with a property, a user's object may have its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else getattr(instance, self.name)


def reserved(name: str) -> str:
    """Why a name cannot be used."""
    return f"expected a name that does not begin with {PREFIX!r}, as those of pydtconv itself do, got {name!r}"
