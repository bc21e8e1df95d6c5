"""The model zoo: `applications.ResNet34(input_shape, classes)`, or `applications.build("resnet34", ...)` by name.

One file per family, each also a Keras-style script that runs.  A family lists the functions that build its models in
`__all__`; a new one is one file and one line in FAMILIES.  This folder is installed as `pydtconv.applications`; the
classes that its networks are made of, such as `Model` and `Sequential`, are in `pydtconv/models/`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pydtconv.utils.suggest import did_you_mean

FAMILIES = ("alexnet", "densenet", "googlenet", "mlp", "mnist_convnet", "mobilenet", "resnet", "vgg")


def _builders() -> dict[str, Callable[..., Any]]:
    modules = [importlib.import_module(f"{__name__}.{family}") for family in FAMILIES]
    return {name: getattr(module, name) for module in modules for name in module.__all__}


_BUILDERS = _builders()
globals().update(_BUILDERS)
__all__ = ["build", "names", *_BUILDERS]


def names() -> list[str]:
    """The names that `build` takes, in lower case."""
    return sorted(name.lower() for name in _BUILDERS)


def build(name: str, input_shape: tuple[int, int, int], classes: int, **options: Any) -> Any:
    """A model of the zoo by its name, in any case: build("mnistconvnet", input_shape=(28, 28, 1), classes=10).

    input_shape: (height, width, channels) of an image.  classes: number of classes.  options: the family's own.
    Returns a model that has not been compiled.  Raises ValueError for an unknown name, with the near ones.
    """
    by_name = {key.lower(): function for key, function in _BUILDERS.items()}
    key = str(name).lower().replace("-", "").replace("_", "")
    if key not in by_name:
        hint = did_you_mean(key, by_name) or f"; expected one of {', '.join(names())}"
        raise ValueError(f"applications.build: no model is called {name!r}{hint}")
    return by_name[key](input_shape=input_shape, classes=classes, **options)
