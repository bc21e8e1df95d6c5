"""Weights files looked at, changed and written anew, for a model whose architecture has changed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.files.archives import Archive
from pydtconv.files.hdf5 import arrays_in, attribute_of, groups_in, opened, writing
from pydtconv.files.reading import check_regular, parsing
from pydtconv.files.whole_file import write_whole
from pydtconv.layers.base.object_paths import walk
from pydtconv.models.stored_weights import own_variables
from pydtconv.models.weight_files import WEIGHTS_IN_ARCHIVE
from pydtconv.naming import printable

#: the group of an object's own weights
_WEIGHTS = "vars"


class KerasFileEditor:
    """The weights of a `.keras` or `.weights.h5` file, by object and name, to be changed and saved.

        editor = KerasFileEditor("old.weights.h5")
        editor.rename_object("layers/dense_2", "dense_1")
        editor.save("new.weights.h5")

    Objects are layers, models in models, the optimizer; each is named by its path in the file ("layers/dense_2"), or by
    the last name of that where no other object has it.  The file itself stays as it is.
    Raises FileNotFoundError, ValueError for other names, BadFileError for damaged files.
    """

    def __init__(self, filepath: str | Path) -> None:
        path = Path(filepath)
        if not path.name.endswith((".keras", ".weights.h5")):
            raise ValueError(f"KerasFileEditor: expected a '.keras' or '.weights.h5' file, got {str(filepath)!r}")
        check_regular(path)
        self.filepath = path
        #: path of the object: name of the weight: array
        self._objects: dict[str, dict[str, np.ndarray]] = {}
        self._names: dict[str, str] = {}
        source: Any = path
        if path.suffix == ".keras":
            with Archive(path, "a '.keras' file") as archive:
                source = io.BytesIO(archive.read(WEIGHTS_IN_ARCHIVE, archive.size(WEIGHTS_IN_ARCHIVE)))
        with parsing(path, "a whole file of weights"), opened(source, "a whole file of weights") as h5:
            for place, group in groups_in(h5):
                place, _, last = place.rpartition("/")
                if last == _WEIGHTS:
                    self._objects[place] = arrays_in(group)
                    if attribute_of(group, "name") is not None:
                        self._names[place] = str(attribute_of(group, "name"))

    # --- looking ----------------------------------------------------------------------------------------------------
    def summary(self) -> None:
        """Prints the objects with their weights."""
        lines = [f"Weights of {self.filepath}"]
        for path, weights in self._objects.items():
            if weights:
                lines.append(f"  {path or '(the model itself)'}")
                lines += [f"    {name}: shape={array.shape}, dtype={array.dtype}" for name, array in weights.items()]
        print(printable("\n".join(lines)))

    def compare(self, reference_model: Any) -> dict[str, Any]:
        """Prints where the file and a built model differ.

        Returns {"status": "success" or "error", "error_count": of objects and weights, "match_count": of weights}.
        """
        expected = _shapes_of(reference_model)
        errors, matches = [], 0
        for path in {**expected, **self._objects}:
            ours, theirs = self._objects.get(path, {}), expected.get(path, {})
            if bool(ours) != bool(theirs):
                errors.append(f"{path}: {'is not in the model' if ours else 'is missing in the file'}")
                continue
            for name in {**theirs, **ours}:
                found = ours[name].shape if name in ours else None
                if found == theirs.get(name):
                    matches += 1
                else:
                    errors.append(f"{path}/{name}: expected {_told(theirs.get(name))}, the file has {_told(found)}")
        print(printable("\n".join(errors)) if errors else f"The file fits the model {reference_model.name!r}")
        return {"status": "error" if errors else "success", "error_count": len(errors), "match_count": matches}

    # --- changing ---------------------------------------------------------------------------------------------------
    def rename_object(self, object_name: str, new_name: str) -> None:
        """Gives an object, and with it all inside of it, another last name."""
        old = self._path_of(object_name)
        new = "/".join([*old.split("/")[:-1], new_name])
        if new in self._all_paths():
            raise ValueError(f"rename_object: new_name: expected a name that is free, got {new!r}")
        self._objects = {_moved(path, old, new): weights for path, weights in self._objects.items()}
        self._names = {_moved(path, old, new): name for path, name in self._names.items() if path != old}

    def delete_object(self, object_name: str) -> None:
        """Takes an object out, and with it all inside of it."""
        path = self._path_of(object_name)
        for each in [other for other in self._objects if _is_in(other, path)]:
            del self._objects[each]

    def add_object(self, object_path: str, weights: Mapping[str, Any]) -> None:
        """A new object at a whole path, with weights by name ("0" is a layer's first one)."""
        if object_path in self._all_paths():
            raise ValueError(f"add_object: object_path: expected a path that is free, got {object_path!r}")
        self._objects[object_path] = {name: np.asarray(value) for name, value in weights.items()}

    def delete_weight(self, object_name: str, weight_name: str) -> None:
        """Takes a weight out of an object."""
        weights = self._objects.get(path := self._path_of(object_name), {})
        if weight_name not in weights:
            raise ValueError(f"delete_weight: {path}: expected one of {', '.join(weights)}, got {weight_name!r}")
        del weights[weight_name]

    def add_weights(self, object_name: str, weights: Mapping[str, Any]) -> None:
        """Adds weights by name to an object, in place of those that have these names."""
        own = self._objects.setdefault(self._path_of(object_name), {})
        own.update({name: np.asarray(value) for name, value in weights.items()})

    def _all_paths(self) -> set[str]:
        """The paths of objects, and of all that they are in."""
        return {"/".join(path.split("/")[:i]) for path in self._objects if path for i in range(1, path.count("/") + 2)}

    def _path_of(self, object_name: str) -> str:
        """The path of an object.  Raises ValueError where none or several have the name."""
        paths = self._all_paths()
        if object_name in paths:
            return object_name
        found = sorted(path for path in paths if path.split("/")[-1] == object_name)
        if len(found) != 1:
            several = f", which {', '.join(found)} are called: give the whole path" if found else ""
            raise ValueError(f"{self.filepath}: expected the name of an object, got {object_name!r}{several}")
        return found[0]

    # --- writing ----------------------------------------------------------------------------------------------------
    def save(self, filepath: str | Path) -> None:
        """Writes a `.weights.h5` file, whole or not at all."""
        path = Path(filepath)
        if not path.name.endswith(".weights.h5"):
            raise ValueError(f"save: filepath: expected a name that ends in '.weights.h5', got {str(filepath)!r}")
        write_whole(path, self._write, self._nbytes())

    def resave_weights(self, filepath: str | Path) -> None:
        """The older name of `save`."""
        self.save(filepath)

    def _nbytes(self) -> int:
        return sum(array.nbytes for own in self._objects.values() for array in own.values())

    def _write(self, file: Any) -> None:
        with writing(file, self._nbytes()) as h5:
            for path, weights in self._objects.items():
                group = h5.create_group(f"{path}/{_WEIGHTS}" if path else _WEIGHTS)
                group.attrs["name"] = self._names.get(path, path.split("/")[-1])
                for name, array in weights.items():
                    group[name] = array


def _shapes_of(model: Any) -> dict[str, dict[str, tuple[int, ...]]]:
    """The shapes of a model's weights, as a file has them."""
    found = {
        path: {str(i): tuple(variable.shape) for i, variable in enumerate(own_variables(layer))}
        for path, layer in walk(model)
    }
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        state: dict[str, Any] = {}
        optimizer.save_own_variables(state)
        found["optimizer"] = {name: np.shape(value) for name, value in state.items()}
    return found


def _told(shape: tuple[int, ...] | None) -> str:
    return "no such weight" if shape is None else f"shape {shape}"


def _is_in(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def _moved(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if _is_in(path, old) else path
