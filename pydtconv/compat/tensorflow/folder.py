"""Functions of `keras.utils` that make data sets, as scripts know them: what they give is a `tf.data.Dataset`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from pydtconv import tree
from pydtconv import utils as our_utils
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.data import Dataset
from pydtconv.compat.tensorflow.pipeline import specs_of, with_axis, without_axis

_OF_FOLDER = (
    "read_share", "get_state", "set_state", "digest", "on_epoch_end", "workers", "max_queue_size", "_pydt_begin",
    "_pydt_class_names",
)  # fmt: skip


class FolderDataset(Dataset):
    """The batches of a folder, which `fit` reads as it reads that."""

    def __init__(self, folder: Any) -> None:
        super().__init__(self._batches, len(folder), spec=self._specs)
        self._folder = folder
        self.class_names = folder.class_names
        self.file_paths = folder.file_paths

    def _specs(self) -> Any:
        return with_axis(without_axis(specs_of(self._example())), None)

    def _batches(self) -> Iterator[Any]:
        return (tree.map_structure(array, batch) for batch in self._folder)

    def __getitem__(self, index: int) -> Any:
        return tree.map_structure(array, self._folder[index])

    def _pydt_walk(self) -> FolderDataset:
        return FolderDataset(self._folder._pydt_walk())

    def __getattr__(self, name: str) -> Any:
        if name in _OF_FOLDER:
            return getattr(self.__dict__["_folder"], name)
        return super().__getattr__(name)


def _of_folder(function: Any) -> Any:
    @functools.wraps(function)
    def from_directory(*args: Any, **kwargs: Any) -> Any:
        """As that of `pydtconv.utils`; batch_size None gives single samples."""
        single = "batch_size" in kwargs and kwargs["batch_size"] is None
        if single:
            kwargs["batch_size"] = 32
        found = function(*args, **kwargs)
        folders = [FolderDataset(each) for each in (found if isinstance(found, tuple) else (found,))]
        sets = [each.unbatch() for each in folders] if single else folders
        return tuple(sets) if isinstance(found, tuple) else sets[0]

    return from_directory


image_dataset_from_directory = _of_folder(our_utils.image_dataset_from_directory)
text_dataset_from_directory = _of_folder(our_utils.text_dataset_from_directory)


@functools.wraps(our_utils.timeseries_dataset_from_array)
def timeseries_dataset_from_array(*args: Any, **kwargs: Any) -> Dataset:
    """As `pydtconv.utils.timeseries_dataset_from_array`."""
    windows: Any = our_utils.timeseries_dataset_from_array(*args, **kwargs)

    def specs() -> Any:
        found = specs_of(tree.map_structure(array, windows[0]))
        return found if windows.batch_size is None else with_axis(without_axis(found), None)

    return Dataset(lambda: (tree.map_structure(array, each) for each in windows), len(windows), spec=specs)
