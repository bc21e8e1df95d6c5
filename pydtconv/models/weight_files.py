"""Weights files: `.weights.h5` in Keras 3's layout, so that either library reads the other's.

Reading checks every shape before it changes one.  stored_weights.py has what is written.
"""

from __future__ import annotations

import inspect
import io
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pydtconv import optimizers, replica
from pydtconv.files.archives import Archive
from pydtconv.files.hdf5 import (
    array_of,
    arrays_in,
    attribute_of,
    datasets_in,
    group_at,
    groups_in,
    is_group,
    members_of,
    opened,
)
from pydtconv.files.reading import check_regular, parsing
from pydtconv.graph.ir.variable import Variable, as_stored
from pydtconv.interchange.named_weights import READERS, STRICT, Leeway, load_named_weights
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.locks import turn_of
from pydtconv.layers.base.object_paths import other_paths, walk
from pydtconv.models.legacy_files import is_legacy, misplaced, names_in, read_legacy_weights
from pydtconv.models.stored_weights import (
    SLOTS_OF,
    merged,
    named_variables,
    optimizers_of,
    own_variables,
    stored_groups,
    weights_bytes,
    write_groups,
    write_one,
    write_shards,
)
from pydtconv.support.uninterrupted import uninterrupted

if TYPE_CHECKING:
    import h5py

WEIGHTS_IN_ARCHIVE = "model.weights.h5"


def save_weights(
    model: Any,
    filepath: str | Path,
    overwrite: bool = True,
    max_shard_size: float | None = None,
    objects_to_skip: Sequence[Layer] = (),
) -> None:
    """Writes the weights (and the state of its optimizers) of a built model to a `.weights.h5` file.

    max_shard_size: GiB; arrays go to several files of at most so many, and filepath is that of their index, which ends
    in `.weights.json`.  objects_to_skip: layers that are left out.
    """
    path, end = Path(filepath), ".weights.h5" if max_shard_size is None else ".weights.json"
    if max_shard_size is not None:
        if isinstance(max_shard_size, bool) or not isinstance(max_shard_size, (int, float)) or max_shard_size <= 0:
            raise ValueError(f"save_weights: max_shard_size: expected a number of GiB above 0, got {max_shard_size!r}")
        if path.name.endswith(".weights.h5"):
            path = path.with_suffix(".json")
            warnings.warn(f"save_weights: filepath: the index of the shards is {path}", stacklevel=3)
    if not path.name.endswith(end):
        raise ValueError(f"save_weights: filepath: expected a name that ends in {end!r}, got {str(filepath)!r}")
    check_built(model, "save_weights")
    if path.exists() and not overwrite:
        raise FileExistsError(f"save_weights: {path} exists, and overwrite=False")
    with turn_of(model).taken():
        groups = list(stored_groups(model, objects_to_skip))
        if max_shard_size is None:
            write_one(path, groups)
        else:
            write_shards(groups, path, max_shard_size * (1 << 30))


def load_weights(
    model: Any,
    filepath: str | Path,
    skip_mismatch: bool = False,
    by_name: bool = False,
    objects_to_skip: Sequence[Layer] | None = None,
) -> None:
    """Reads weights from a `.weights.h5`, `.keras` or `.h5` file (of Keras 2 and 3) into a built model.

    A `.weights.json` is the index of a file in shards, see `save_weights`.  `.safetensors` and `.pth` have weights by
    the names of Keras's layers or of torchvision's modules, for networks of the zoo.
    Raises ValueError naming layer, expected and found shapes where they do not fit, before anything is changed.  With
    skip_mismatch, layers that do not fit are left as they are, with a warning.  by_name: layers get the weights that
    the file has under their names, others keep theirs.  objects_to_skip: layers that keep theirs.
    """
    more = math.inf if Path(filepath).suffix in READERS else 0
    leeway = Leeway(lambda layer: True, more) if skip_mismatch else STRICT
    left = read_file(model, filepath, leeway, by_name, objects_to_skip)
    if left:
        warnings.warn(f"{filepath}: {len(left)} layers were skipped:\n" + "\n".join(left), stacklevel=3)


def read_file(
    model: Any,
    filepath: str | os.PathLike[str],
    leeway: Leeway,
    by_name: bool = False,
    objects_to_skip: Sequence[Layer] | None = None,
) -> list[str]:
    """As `load_weights`; returns the layers that keep their weights, and why, with the leeway that layers have."""
    path = Path(filepath)
    is_index, by_names = path.name.endswith(".weights.json"), path.suffix in READERS
    if path.suffix not in (".keras", ".h5", ".hdf5") and not is_index and not by_names:
        raise ValueError(
            "load_weights: filepath: expected a '.weights.h5', '.keras', '.h5', '.safetensors' or '.pth' file, got "
            f"{str(filepath)!r}"
        )
    if objects_to_skip is not None and ".weights." not in path.name:
        raise ValueError(f"load_weights: objects_to_skip: expected a '.weights.h5' file, got {str(filepath)!r}")
    if by_name and by_names:
        raise ValueError(f"load_weights: by_name: {path.suffix} files always go by names: expected False")
    replica.current().wait_for(path)
    if not path.exists():
        raise FileNotFoundError(f"load_weights: there is no file {path}")
    check_built(model, "load_weights")
    source: Any = path
    if by_names:
        return load_named_weights(model, path, leeway)
    if path.suffix == ".keras":
        with Archive(path, "a '.keras' file") as archive:
            source = io.BytesIO(archive.read(WEIGHTS_IN_ARCHIVE, archive.size(WEIGHTS_IN_ARCHIVE)))
    elif is_index:
        source = merged(path)
    else:
        check_regular(path)
    return read_weights(model, source, str(path), leeway, by_name, objects_to_skip or ())


def write_weights(model: Layer, file: Any) -> None:
    """Writes to a path or a file object."""
    with turn_of(model).taken():
        write_groups(file, stored_groups(model), weights_bytes(model))


def read_weights(
    model: Layer,
    file: Any,
    name: str,
    leeway: Leeway = STRICT,
    by_name: bool = False,
    skipped: Sequence[Layer] = (),
) -> list[str]:
    """Reads from a path or a file object; name is the one that errors show.  Returns the layers that keep theirs.

    All is read and checked before anything is changed, and Ctrl-C waits while it is.  Values that are not finite are
    taken, as Keras does, for a run that diverged can be looked at; a warning says so.
    """
    with turn_of(model).taken():
        return _read_weights(model, file, name, leeway, by_name, skipped)


def _read_weights(
    model: Layer, file: Any, name: str, leeway: Leeway, by_name: bool, skipped: Sequence[Layer]
) -> list[str]:
    with parsing(name, "a whole file of weights"), opened(file, "a whole file of weights") as h5:
        if is_legacy(h5):
            kept = read_legacy_weights(model, h5, name, leeway, by_name)
            for _, optimizer in optimizers_of(model):
                optimizer.variables_replaced()
            return kept
        fitting: list[tuple[Variable, h5py.Dataset]] = []
        problems = list(_other_layers(model, h5, leeway)) if leeway.known_names else []
        left: list[str] = []
        others: Mapping[str, Sequence[str]] | None = None
        places = _places_by_name(h5) if by_name else {}
        read_by_layers: list[tuple[Layer, dict[str, np.ndarray]]] = []
        for path, layer in walk(model, skipped):
            variables = own_variables(layer)
            place = f"{path}/vars" if path else "vars"
            if by_name:
                if not variables or layer.name not in places:
                    continue
                place = _place_among(places[layer.name], place, layer, name)
            stored = group_at(h5, place)
            if stored is None and variables and not by_name:
                others = other_paths(model) if others is None else others
                stored = _stored_elsewhere(others, h5, path)
            if stored is not None and type(layer).load_own_variables is not Layer.load_own_variables:
                read_by_layers.append((layer, arrays_in(stored)))
                continue
            datasets = datasets_in(stored, len(variables))
            problem = _mismatch(layer, path, variables, stored, datasets)
            if problem:
                (left if leeway.layers(layer) else problems).append(problem)
            elif datasets:
                fitting.extend(zip(variables, datasets, strict=True))
        wanted = not problems
        read = [(variable, array_of(dataset)) for variable, dataset in fitting] if wanted else []
        states = [
            (optimizer, _optimizer_state(model, optimizer, path, h5, name) if wanted and not by_name else {})
            for path, optimizer in optimizers_of(model)
        ]
    if not wanted:
        more = f"\n... and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise ValueError(f"{name} does not fit the model {model.name!r}:\n" + "\n".join(problems[:5]) + more)
    found = as_stored(name, read, stacklevel=6)
    with uninterrupted():
        left += _load_by_layers(read_by_layers, name, leeway)
        for variable, value in found:
            variable.assign(value)
        for optimizer, state in states:
            _load_optimizer(optimizer, state)
    for _, state in states:
        if isinstance(state, str):
            warnings.warn(f"{name}: the optimizer's state was skipped: {state}", stacklevel=5)
    return left


def _stored_elsewhere(places: Mapping[str, Sequence[str]], h5: h5py.File, path: str) -> h5py.Group | None:
    """The group of a layer under another path that leads to it (see `other_paths`); None where the file has none."""
    for known, others in places.items():
        if f"{path}/".startswith(f"{known}/"):
            groups = (group_at(h5, f"{other}{path.removeprefix(known)}/vars") for other in others)
            found = next((group for group in groups if group is not None), None)
            if found is not None:
                return found
    return None


def _load_optimizer(optimizer: Any, state: dict[str, np.ndarray] | str) -> None:
    """state: what `_optimizer_state` gives."""
    if isinstance(state, dict) and state:
        optimizer.load_own_variables(state)
    else:
        optimizer.variables_replaced()


def _load_by_layers(read: list[tuple[Layer, dict[str, np.ndarray]]], file: str, leeway: Leeway) -> Iterator[str]:
    """Lets layers that read for themselves do so; gives what is wrong with those that are skipped."""
    for layer, arrays in read:
        try:
            layer.load_own_variables(arrays)
        except (LookupError, ValueError) as error:
            told = f"layer {layer.name!r} ({type(layer).__name__}): load_own_variables: {error!r}"
            if not leeway.layers(layer):
                raise ValueError(f"{file}: {told}") from error
            yield told


def _place_among(places: list[str], own: str, layer: Layer, file: str) -> str:
    """Which of the places of a layer's name is its: its own, or the only one.  Raises ValueError where it is open."""
    if own in places or len(places) == 1:
        return own if own in places else places[0]
    raise ValueError(
        f"{file}: layer {layer.name!r}: expected one layer of that name with by_name=True, got {len(places)}: "
        + ", ".join(place.removesuffix("/vars") for place in places[:5])
    )


def _places_by_name(h5: h5py.File) -> dict[str, list[str]]:
    """Where a file has the variables of layers, by the layers' name, which is an attribute there."""
    found: dict[str, list[str]] = {}
    for path, group in groups_in(h5):
        if path.rpartition("/")[2] == "vars" and not path.startswith("optimizer/"):
            name = attribute_of(group, "name")
            if name is not None:
                found.setdefault(name.decode() if isinstance(name, bytes) else str(name), []).append(path)
    return found


def _other_layers(model: Layer, h5: h5py.File, leeway: Leeway) -> Iterator[str]:
    """Says which layers of a file are not those of a network of the zoo (see `Leeway`)."""
    places = _places_by_name(h5)
    names = {place: name for name, found in places.items() for place in found}
    own = {f"{path}/vars": layer for path, layer in walk(model) if own_variables(layer)}
    for place, layer in own.items():
        if problem := misplaced(layer.name, names.get(place, layer.name), places):
            yield f"layer {layer.name!r} ({type(layer).__name__}): {problem}"
    stored = {path for path, group in groups_in(h5) if path.endswith("/vars") and any(members_of(group))}
    if refusal := leeway.refusal({path for path in stored - own.keys() if path.startswith("layers/")}):
        yield refusal


def _optimizer_state(model: Any, optimizer: Any, path: str, h5: h5py.File, name: str) -> dict[str, np.ndarray] | str:
    """What an optimizer is to load, nothing where there is none; a text says why it is the state of another one."""
    group = group_at(h5, f"{path}/vars")
    if group is None:
        return {}
    other = _other_class(optimizer, attribute_of(group, "name"))
    if other:
        return f"expected that of {type(optimizer).__name__}, found that of {other}"
    _make_slots(model, optimizer, path, names_in(group, SLOTS_OF))
    variables = optimizer.variables
    datasets = datasets_in(group, len(variables))
    if datasets is None:
        unbuilt = "" if optimizer.built else f"; {path!r} is not built yet: call its build(variables) before"
        return f"expected {len(variables)} variables, found {len(group)}{unbuilt}"
    for variable, dataset in zip(variables, datasets, strict=True):
        problem = _difference(variable, dataset)
        if problem:
            return problem
    found = as_stored(name, zip(variables, map(array_of, datasets), strict=True), stacklevel=7)
    return {str(index): value for index, (_, value) in enumerate(found)}


def _make_slots(model: Any, optimizer: Any, path: str, names: list[str]) -> None:
    """Slots of the variables of these names, among which are those of layers that were frozen after training.

    Without names, of what will be trained.
    """
    known = named_variables(model)
    of = [known[name] for name in names if name in known]
    there = {id(variable) for variable in optimizer._pydt_slots.variables} if optimizer.built else set()
    takes_more = not (optimizer.built and optimizer.goes_by_variable)
    if of and len(of) == len(names) and takes_more and there < {id(variable) for variable in of}:
        optimizer.ready(of)
    elif not optimizer.built and path == "optimizer":
        optimizer.ready(model.trainable_variables)


def _other_class(optimizer: Any, name: Any) -> str | None:
    """The class of optimizers that gave a name in a file, where that is a known one that is not the optimizer's."""
    name = name.decode() if isinstance(name, bytes) else str(name)
    if name == optimizer.name or isinstance(optimizer, optimizers.LossScaleOptimizer):
        return None
    known = {key.lower(): cls for key, cls in vars(optimizers).items() if inspect.isclass(cls)}
    cls = known.get(re.sub(r"_\d+$", "", name).replace("_", "").lower())
    if cls is None or isinstance(optimizer, cls) or issubclass(cls, type(optimizer)):
        return None
    return cls.__name__


def _mismatch(
    layer: Layer,
    path: str,
    variables: list[Variable],
    stored: h5py.Group | None,
    datasets: list[h5py.Dataset] | None,
) -> str | None:
    where = f"layer {layer.name!r} ({type(layer).__name__}, at {path or 'the top'} in the file)"
    if datasets is None:
        return f"{where}: expected {len(variables)} variables, found {0 if stored is None else len(stored)}"
    problems = (_difference(*pair) for pair in zip(variables, datasets, strict=True))
    return next((f"{where}: {problem}" for problem in problems if problem), None)


def _difference(variable: Variable, dataset: h5py.Dataset) -> str | None:
    """What keeps a data set from being the variable's value."""
    if dataset.shape != variable.shape:
        return f"{variable.name}: expected shape {variable.shape}, found {dataset.shape}"
    if dataset.dtype.kind == "f" and np.dtype(variable.dtype).kind != "f":
        return f"{variable.name}: expected {variable.dtype}, found {dataset.dtype}"
    return None


def is_without_weights(weights: bytes, name: str) -> bool:
    """Whether a file of weights has none but those of optimizers, as that of a model that was not built.

    name: of the file, for errors.
    """
    with parsing(name, "a whole file of weights"), opened(io.BytesIO(weights), "a whole file of weights") as h5:
        own = (group for path, group in groups_in(h5) if path.partition("/")[0] != "optimizer")
        return all(is_group(member) for group in own for _, member in members_of(group))


def unbuilt_layers(model: Any) -> str:
    """The first layers that are not built, in words; nothing where all are."""
    unbuilt = [layer.name for layer in model._pydt_flatten_layers() if not layer.built]
    if not unbuilt:
        return ""
    return f"the model {model.name!r} is not built yet (layers {', '.join(unbuilt[:5])})"


def check_built(model: Any, what: str) -> None:
    unbuilt = unbuilt_layers(model)
    if unbuilt:
        raise ValueError(f"{what}: {unbuilt}: call it on data or use build(input_shape) first")
