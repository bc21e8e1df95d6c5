"""Weights files: `.weights.h5` in Keras 3's layout, so that either library reads the other's.

A file is written beside its place and moved there when it is whole.  Reading checks every shape before it changes one.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from pydtconv import replica
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.layer import Layer
from pydtconv.layers.object_paths import walk
from pydtconv.layers.turns import turn_of
from pydtconv.utils.whole_file import write_whole

WEIGHTS_IN_ARCHIVE = "model.weights.h5"


def save_weights(model: Any, filepath: str | Path, overwrite: bool = True) -> None:
    """Writes the weights (and the optimizer's state) of a built model to a `.weights.h5` file."""
    path = Path(filepath)
    if not path.name.endswith(".weights.h5"):
        raise ValueError(f"save_weights: filepath: expected a name that ends in '.weights.h5', got {str(filepath)!r}")
    _check_built(model, "save_weights")
    if path.exists() and not overwrite:
        raise FileExistsError(f"save_weights: {path} exists, and overwrite=False")
    write_whole(path, lambda file: write_weights(model, file), weights_bytes(model))


def load_weights(model: Any, filepath: str | Path, skip_mismatch: bool = False) -> None:
    """Reads weights from a `.weights.h5` or `.keras` file into a built model.

    Raises ValueError naming layer, expected and found shapes where they do not fit, before anything is changed.  With
    skip_mismatch, layers that do not fit are left as they are, with a warning.
    """
    path = Path(filepath)
    replica.current().wait_for(path)
    if not path.exists():
        raise FileNotFoundError(f"load_weights: there is no file {path}")
    _check_built(model, "load_weights")
    if path.suffix == ".keras":
        try:
            with zipfile.ZipFile(path) as archive:
                weights = archive.read(WEIGHTS_IN_ARCHIVE)
        except (zipfile.BadZipFile, KeyError) as error:
            raise OSError(f"{path} is no whole '.keras' file: {error}") from error
        read_weights(model, io.BytesIO(weights), str(path), skip_mismatch)
    elif path.name.endswith(".h5"):
        read_weights(model, path, str(path), skip_mismatch)
    else:
        raise ValueError(f"load_weights: filepath: expected a '.weights.h5' or '.keras' file, got {str(filepath)!r}")


def write_weights(model: Layer, file: Any) -> None:
    """Writes to a path or a file object."""
    with turn_of(model).taken(), h5py.File(file, "w") as h5:
        for path, layer in walk(model):
            group = h5.create_group(f"{path}/vars" if path else "vars")
            group.attrs["name"] = layer.name
            for index, variable in enumerate(_own_variables(layer)):
                group[str(index)] = variable.value
        optimizer = getattr(model, "optimizer", None)
        if optimizer is not None:
            group = h5.create_group("optimizer/vars")
            group.attrs["name"] = optimizer.name
            state: dict[str, Any] = {}
            optimizer.save_own_variables(state)
            for key, value in state.items():
                group[key] = value


def weights_bytes(model: Any) -> int:
    """Bytes of all arrays that `write_weights` writes."""
    optimizer = getattr(model, "optimizer", None)
    variables = [*model.variables, *([] if optimizer is None else optimizer.variables)]
    return sum(variable.value.nbytes for variable in variables)


def read_weights(model: Layer, file: Any, name: str, skip_mismatch: bool = False) -> None:
    """Reads from a path or a file object; name is the one that errors show."""
    try:
        h5 = h5py.File(file, "r")
    except OSError as error:
        raise OSError(f"{name} is no whole file of weights: {error}") from error
    with h5, turn_of(model).taken():
        found: list[tuple[Variable, np.ndarray]] = []
        problems: list[str] = []
        for path, layer in walk(model):
            group = h5.get(f"{path}/vars" if path else "vars")
            stored = {} if group is None else {key: np.asarray(group[key]) for key in group}
            variables = _own_variables(layer)
            problem = _mismatch(layer, path, variables, stored)
            if problem:
                problems.append(problem)
            else:
                found.extend((variable, stored[str(index)]) for index, variable in enumerate(variables))
        if problems and not skip_mismatch:
            more = f"\n... and {len(problems) - 5} more" if len(problems) > 5 else ""
            raise ValueError(f"{name} does not fit the model {model.name!r}:\n" + "\n".join(problems[:5]) + more)
        if problems:
            warnings.warn(f"{name}: {len(problems)} layers were skipped:\n" + "\n".join(problems), stacklevel=3)
        for variable, value in found:
            variable.assign(value)
        group = h5.get("optimizer/vars")
        if group is not None and getattr(model, "optimizer", None) is not None:
            _read_optimizer(model, {key: np.asarray(group[key]) for key in group}, name)


def _read_optimizer(model: Any, stored: dict[str, np.ndarray], name: str) -> None:
    """The optimizer's state; a warning where it is the state of another one."""
    optimizer = model.optimizer
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    try:
        optimizer.load_own_variables(stored)
    except ValueError as error:
        warnings.warn(f"{name}: the optimizer's state was skipped: {error}", stacklevel=4)


def _own_variables(layer: Layer) -> list[Variable]:
    return layer._own_variables()


def _mismatch(layer: Layer, path: str, variables: list[Variable], stored: dict[str, np.ndarray]) -> str | None:
    where = f"layer {layer.name!r} ({type(layer).__name__}, at {path or 'the top'} in the file)"
    if len(stored) != len(variables):
        return f"{where}: expected {len(variables)} variables, found {len(stored)}"
    for index, variable in enumerate(variables):
        shape = stored[str(index)].shape if str(index) in stored else None
        if shape != variable.shape:
            return f"{where}: {variable.name}: expected shape {variable.shape}, found {shape}"
    return None


def _check_built(model: Any, what: str) -> None:
    unbuilt = [layer.name for layer in model._flatten_layers() if not layer.built]
    if unbuilt:
        raise ValueError(
            f"{what}: the model {model.name!r} is not built yet (layers {', '.join(unbuilt[:5])}): call it on data or "
            "use build(input_shape) first"
        )
