"""`tf.data.Dataset`: a pipeline of elements, which `fit`, `evaluate` and `predict` read batch by batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydtconv import tree
from pydtconv.compat.tensorflow.arrays import text_of
from pydtconv.compat.tensorflow.decoding import parse_tensor, serialize_tensor
from pydtconv.compat.tensorflow.elements import as_elements, made
from pydtconv.compat.tensorflow.options import Options
from pydtconv.compat.tensorflow.pipeline import Elements, Pipeline
from pydtconv.compat.tensorflow.records import TFRecordWriter, records_of
from pydtconv.compat.tensorflow.selections import Selections
from pydtconv.compat.tensorflow.sources import Sources
from pydtconv.compat.tensorflow.specs import TensorSpec
from pydtconv.compat.tensorflow.transformations import Transformations


class Dataset(Sources, Transformations, Selections):
    """Elements, each an array or a nested structure of arrays, made anew by each iteration."""

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """The data set: options change nothing here."""
        found = Dataset(self._make, self._count, like=self)
        found._options = self.options().merge(options)
        return found

    def options(self) -> Options:
        """The options."""
        return self._options or Options()

    def apply(self, transformation_func: Callable[[Dataset], Dataset], name: str | None = None) -> Dataset:
        """What the function makes of the data set."""
        return transformation_func(self)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """reduce_func(state, element) over all elements; the last state."""
        state = as_elements(initial_state)
        for each in self:
            state = made(reduce_func(state, each))
        return state

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element.  Raises ValueError where there are more, or none."""
        found = list(self.take(2))
        if len(found) != 1:
            raise ValueError(f"get_single_element: expected one element, got {'more' if found else 'none'}")
        return found[0]

    def as_numpy_iterator(self) -> Any:
        """The elements as NumPy's own arrays; strings as bytes."""

        def plain(part: Any) -> Any:
            return part.as_numpy_iterator() if isinstance(part, Pipeline) else part.numpy()

        return Elements((tree.map_structure(plain, each) for each in self), self)

    # --- in files -------------------------------------------------------------------------------------------------
    def save(
        self, path: Any, compression: str | None = None, shard_func: Any = None, checkpoint_args: Any = None
    ) -> None:
        """Writes the elements to a folder, which `load` reads here; its files are not TensorFlow's."""
        for _ in self._saving(text_of(path), compression):
            pass

    def _saving(self, path: str, compression: str | None) -> Iterator[Any]:
        """The elements, while they are written; the folder says that it is whole when all are."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dataset.json").unlink(missing_ok=True)
        structure, count = None, 0
        with TFRecordWriter(folder / "elements.tfrecord", compression) as writer:
            for each in self:
                structure = tree.map_structure(lambda x: [x.dtype.name], each)
                for leaf in tree.flatten(each):
                    writer.write(serialize_tensor(leaf))
                count += 1
                yield each
        told = {"elements": count, "compression": compression or "", "structure": _written(structure)}
        (folder / "dataset.json").write_text(json.dumps(told))

    @staticmethod
    def load(
        path: Any, element_spec: Any = None, compression: str | None = None, reader_func: Any = None, wait: bool = False
    ) -> Dataset:
        """The data set that `save` wrote to a folder.  Raises FileNotFoundError where there is none."""
        folder = Path(text_of(path))
        if not (folder / "dataset.json").exists():
            raise FileNotFoundError(f"{folder}: no data set that Dataset.save has written here")
        told = json.loads((folder / "dataset.json").read_text())
        structure = _read(told["structure"])

        def make() -> Iterator[Any]:
            records = records_of(folder / "elements.tfrecord", told["compression"])
            for _ in range(told["elements"]):
                yield tree.map_structure(lambda spec: parse_tensor(next(records), spec.dtype), structure)

        return Dataset(make, told["elements"])

    def snapshot(
        self, path: Any, compression: str = "", reader_func: Any = None, shard_func: Any = None, name: Any = None
    ) -> Dataset:
        """The elements that a folder keeps, written there by the first whole iteration."""
        folder = text_of(path)

        def make() -> Iterator[Any]:
            there = Path(folder, "dataset.json").exists()
            return iter(Dataset.load(folder)) if there else self._saving(folder, compression)

        return Dataset(make, self._count, like=self)


Pipeline.dataset = Dataset


def _written(structure: Any) -> Any:
    """The structure of elements as JSON: a list is a leaf's dtype."""
    if isinstance(structure, dict):
        return {"dict": {key: _written(part) for key, part in structure.items()}}
    return {"tuple": list(map(_written, structure))} if isinstance(structure, tuple) else structure


def _read(told: Any) -> Any:
    if isinstance(told, dict):
        parts = told.get("dict")
        return {k: _read(v) for k, v in parts.items()} if parts is not None else tuple(map(_read, told["tuple"]))
    return told if told is None else TensorSpec(None, told[0])
