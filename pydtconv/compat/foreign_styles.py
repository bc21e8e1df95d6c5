"""Scripts of Keras for JAX or PyTorch: one line at the first of their names says which style runs here.

The names are attributes of layers, optimizers, metrics and tensors that raise AttributeError, so that `hasattr` is
False; a class of the script that has such a name keeps its own.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn

from pydtconv.layers.base.layer import Layer
from pydtconv.loops.recorded_tensor import Handle
from pydtconv.metrics import Metric
from pydtconv.optimizers import Optimizer

#: names of packages that such scripts begin with, by the backend
PACKAGES = {"jax": ("jax", "flax", "optax"), "torch": ("torch",)}
_NAMES: dict[str, dict[type, tuple[str, ...]]] = {
    "jax": {
        Layer: ("stateless_call", "stateless_compute_loss", "jax_state_sync"),
        Optimizer: ("stateless_apply",),
        Metric: ("stateless_update_state", "stateless_result", "stateless_reset_state"),
    },
    "torch": {
        Layer: ("zero_grad", "parameters", "named_parameters", "state_dict", "load_state_dict"),
        Optimizer: ("zero_grad", "step", "param_groups"),
        Handle: ("backward", "detach", "requires_grad_"),
    },
}


def told(name: str, backend: str) -> str:
    """The line that says what runs here."""
    framework = {"jax": "JAX", "torch": "PyTorch"}[backend]
    return (
        f"{name} is for Keras on {framework}; pydtconv runs the style of Keras on TensorFlow (GradientTape, "
        'train_step(self, data)): see "From JAX or PyTorch" in the guide "Your Keras script"'
    )


class _Refused:
    """An attribute that is not there, whose error says why."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(told(f"{owner.__name__}.{self._name}", self._backend))


class Packages(MetaPathFinder):
    """Python's last finder: what `import jax` says where there is no such package."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        for backend, names in PACKAGES.items():
            if fullname in names:
                raise ModuleNotFoundError(f"No module named {fullname!r}: {told(fullname, backend)}", name=fullname)


_before: list[str | None] = []


def install() -> None:
    """Adds the names, and notes which backend the environment had named."""
    _before[:] = [os.environ.get("KERAS_BACKEND")]
    if not any(isinstance(finder, Packages) for finder in sys.meta_path):
        sys.meta_path.append(Packages())
    for backend, classes in _NAMES.items():
        for cls, names in classes.items():
            for name in names:
                if not hasattr(cls, name):
                    refused = _Refused(backend)
                    refused.__set_name__(cls, name)
                    setattr(cls, name, refused)


def uninstall() -> None:
    """Takes the names away."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, Packages)]
    for classes in _NAMES.values():
        for cls, names in classes.items():
            for name in names:
                if isinstance(vars(cls).get(name), _Refused):
                    delattr(cls, name)


def look_at_backend() -> None:
    """Warns where the script has set KERAS_BACKEND to JAX or PyTorch; what the shell has set says nothing of it."""
    backend = os.environ.get("KERAS_BACKEND")
    if backend in PACKAGES and _before != [backend]:
        warnings.warn(told(f"KERAS_BACKEND={backend}", backend), stacklevel=2)
