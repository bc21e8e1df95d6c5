"""What a weights file holds of a model, and how it is written: as one file, or in shards.

Shards are Keras's: an index `x.weights.json` says which of the files `x_00000.weights.h5`, `x_00001.weights.h5`, ... in
its folder have the arrays of a group; each of these is laid out as a whole file is.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pydtconv import optimizers
from pydtconv.files.hdf5 import arrays_in, attribute_of, groups_in, opened, writing
from pydtconv.files.reading import BadFileError, check_regular, parsing, read_json
from pydtconv.files.whole_file import write_whole
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.object_paths import walk, walk_held
from pydtconv.models.legacy_files import names_in, write_names

#: attribute of an optimizer's state: the variables that have slots, where that are others than will be trained
SLOTS_OF = "slots_of"
_WHAT = "a whole file of weights"


class Stored(NamedTuple):
    """A group of a file: its path, the name of the object that it is of, arrays by name; slots_of: see `SLOTS_OF`."""

    path: str
    name: str
    arrays: Mapping[str, Any]
    slots_of: list[str] | None = None

    @property
    def nbytes(self) -> int:
        return sum(np.asarray(array).nbytes for array in self.arrays.values())


def own_variables(layer: Layer) -> list[Variable]:
    return layer._pydt_own_variables()


def named_variables(model: Layer) -> dict[str, Variable]:
    """The variables of a model by their places in a file."""
    layers = ((path, own_variables(layer)) for path, layer in walk(model))
    return {f"{path}/{i}": variable for path, variables in layers for i, variable in enumerate(variables)}


def optimizers_of(model: Any) -> list[tuple[str, Any]]:
    """(path, optimizer) of that of compile, and of all others that the model and the layers inside hold."""
    main = getattr(model, "optimizer", None)
    others = [(path, each) for path, each in walk_held(model, optimizers.Optimizer) if each is not main]
    return others if main is None else [("optimizer", main), *others]


def weights_bytes(model: Any) -> int:
    """Bytes of all arrays that a file of the model has."""
    kept = [variable for _, optimizer in optimizers_of(model) for variable in optimizer.variables]
    return sum(variable.spec.nbytes for variable in (*model.variables, *kept))


def stored_groups(model: Layer, skipped: Iterable[Layer] = ()) -> Iterator[Stored]:
    """The groups of a model's file.  skipped: layers that are left out, with all inside of them."""
    for path, layer in walk(model, skipped):
        yield Stored(f"{path}/vars" if path else "vars", layer.name, _written(layer))
    for path, optimizer in optimizers_of(model):
        of = list(map(id, optimizer._pydt_slots.variables)) if optimizer.built else []
        names: dict[int, str] | None = None
        if of and of != list(map(id, model.trainable_variables)):
            names = {id(variable): name for name, variable in named_variables(model).items()}
        yield from _of_optimizer(path, optimizer, None if names is None else [names.get(each, "") for each in of])


def _written(layer: Layer) -> Mapping[str, Any]:
    """What a layer has in a file: its variables, or what a subclass writes for itself."""
    if not layer._pydt_writes_itself:
        return {str(index): variable.array for index, variable in enumerate(own_variables(layer))}
    state: dict[str, Any] = {}
    layer.save_own_variables(state)
    return state


def _of_optimizer(path: str, optimizer: Any, slots_of: list[str] | None) -> Iterator[Stored]:
    state: dict[str, Any] = {}
    optimizer.save_own_variables(state)
    yield Stored(f"{path}/vars", optimizer.name, state, slots_of)
    inner = getattr(optimizer, "inner_optimizer", None)
    if inner is not None:  # Keras writes these twice, and looks for both
        yield from _of_optimizer(f"{path}/inner_optimizer", inner, None)


def write_groups(file: Any, groups: Iterable[Stored], nbytes: int) -> None:
    """Writes a weights file to a file object.  nbytes: of all arrays, for errors."""
    with writing(file, nbytes) as h5:
        for path, name, arrays, slots_of in groups:
            group = h5.create_group(path)
            group.attrs["name"] = name
            for key, value in arrays.items():
                group[key] = value
            if slots_of is not None:
                write_names(group, SLOTS_OF, slots_of)


# --- shards ---------------------------------------------------------------------------------------------------------
def write_shards(groups: Iterable[Stored], index: Path, limit: float) -> None:
    """Writes shards with at most `limit` bytes of arrays, each file whole or not at all, the index last.

    Raises ValueError, before anything is written, for an array that is larger.
    """
    base = index.name.removesuffix(".weights.json")
    shards: list[list[Stored]] = [[]]
    places: dict[str, Any] = {}
    left, total = limit, 0
    for group in groups:
        shards[-1].append(group._replace(arrays={}))
        for key, value in group.arrays.items():
            size = np.asarray(value).nbytes
            if size > limit:
                raise ValueError(f"max_shard_size: expected {size} bytes or more for {group.path}/{key}, got {limit:g}")
            if size > left:
                shards.append([group._replace(arrays={})])
                left = limit
            left, total = left - size, total + size
            last = shards[-1][-1]
            shards[-1][-1] = last._replace(arrays={**last.arrays, key: value})
            name, known = f"{base}_{len(shards) - 1:05}.weights.h5", places.get(f"/{group.path}")
            names = known if isinstance(known, list) else [known]  # a list where there are several arrays
            places[f"/{group.path}"] = name if known is None else list(dict.fromkeys([*names, name]))
    for number, shard in enumerate(shards):
        write_one(index.with_name(f"{base}_{number:05}.weights.h5"), shard)
    text = json.dumps({"metadata": {"total_size": total}, "weight_map": places}, indent=4)
    write_whole(index, lambda file: file.write(text.encode()), len(text))


def write_one(path: Path, groups: list[Stored]) -> None:
    """Writes one file, whole or not at all."""
    nbytes = sum(group.nbytes for group in groups)
    write_whole(path, lambda file: write_groups(file, groups, nbytes), nbytes)


def merged(index: Path) -> io.BytesIO:
    """What the shards of an index hold, as one file in memory.

    Raises BadFileError, which names the file, for what is no index, and for shards that are not beside it.
    """
    data = read_json(index, "an index of shards")
    found: Any = data.get("weight_map") if isinstance(data, dict) else None
    parts: list[Any] = list(found.values()) if isinstance(found, dict) else [None]
    names = [name for part in parts for name in (part if isinstance(part, list) else [part])]
    if not all(isinstance(name, str) and name.endswith(".weights.h5") and Path(name).name == name for name in names):
        raise BadFileError(f"{index}: expected weight_map with the names of '.weights.h5' files of its folder")
    whole = io.BytesIO()
    with writing(whole, 0) as target:
        for path in map(index.with_name, dict.fromkeys(names)):
            check_regular(path)
            with parsing(path, _WHAT), opened(path, _WHAT) as h5:
                for place, group in groups_in(h5):
                    copied = target.require_group(place or "/")
                    for key, array in arrays_in(group).items():
                        copied[key] = array
                    if attribute_of(group, "name") is not None:
                        copied.attrs["name"] = attribute_of(group, "name")
                    if names_in(group, SLOTS_OF):
                        write_names(copied, SLOTS_OF, names_in(group, SLOTS_OF))
    return whole
