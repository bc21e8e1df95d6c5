"""`Model.get_state_tree` and `set_state_tree`: the values of all variables as nested dicts of their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

#: parts of the tree, and the variables of a model that each has
_PARTS = {
    "trainable_variables": lambda model: model.trainable_variables,
    "non_trainable_variables": lambda model: model.non_trainable_variables,
    "optimizer_variables": lambda model: [] if model.optimizer is None else model.optimizer.variables,
    "metrics_variables": lambda model: model.metrics_variables,
}


def state_tree(model: Any, value_format: str) -> dict[str, dict[str, Any]]:
    """The parts, each nested by the paths of its variables.  Raises ValueError where two variables have one path."""
    if value_format not in ("backend_tensor", "numpy_array"):
        raise ValueError(
            f"get_state_tree: value_format: expected 'backend_tensor' or 'numpy_array', got {value_format!r}"
        )
    return {part: _nested(variables_of(model)) for part, variables_of in _PARTS.items()}


def set_state_tree(model: Any, tree: Mapping[str, Any]) -> None:
    """Sets the variables of the paths.  Raises ValueError, before anything is changed, for unknown paths and shapes."""
    found = []
    for part, values in tree.items():
        if part not in _PARTS:
            raise ValueError(f"set_state_tree: expected parts of {list(_PARTS)}, got {part!r}")
        if not isinstance(values, Mapping):
            raise ValueError(f"set_state_tree: {part}: expected a dict of values by their paths, got {values!r}")
        by_path = {variable.path: variable for variable in _PARTS[part](model)}
        for path, value in _flat(values, ""):
            if path not in by_path:
                raise ValueError(f"set_state_tree: {part}: {path!r} is no path of these: {list(by_path)}")
            shape, got = tuple(by_path[path].shape), np.shape(value)
            if got != shape:
                raise ValueError(f"set_state_tree: {part}: {path!r}: expected shape {shape}, got {got}")
            found.append((by_path[path], value))
    for variable, value in found:
        variable.assign(value)


def _nested(variables: Iterable[Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for variable in variables:
        *folders, name = variable.path.split("/")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        if name in place:
            raise ValueError(
                f"get_state_tree: two variables have the path {variable.path!r}: expected layers, metrics and "
                "optimizers of different names"
            )
        place[name] = variable.numpy()
    return nested


def _flat(values: Mapping[str, Any], before: str) -> Iterable[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}/")
        else:
            yield before + key, value
