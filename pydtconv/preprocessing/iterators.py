"""What `ImageDataGenerator.flow` and its kin give: batches by number for `fit`, and one after the other for `next`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.files.images import array_to_img, img_to_array, load_img
from pydtconv.support.dataset import Walked
from pydtconv.support.random import next_seed

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
CLASS_MODES = ("categorical", "binary", "sparse", "input", None)
_CHANNELS = {"rgb": 3, "rgba": 4, "grayscale": 1}

#: target size, color mode, interpolation, whether the ratio is kept
Reading = tuple[tuple[int, int], str, str, bool]
#: folder for the changed images or None, what their names begin with, format
Saving = tuple[Any, str, str]


class ImageIterator(Walked):
    """Batches of `samples` images.  A subclass gives one unchanged (`_image`) and what goes along with a batch.

    n, samples: how many.  batch_size.  seed: of the order and of the changes: two iterators with one seed change the
    images of the same number alike, as images and their masks need it.  `next` goes round without end, each round in an
    order of its own.
    """

    _pydt_order = property(lambda self: self._order)  # which all processes must have alike

    def __init__(
        self, generator: Any, count: int, batch_size: int, shuffle: bool, seed: int | None, saving: Saving
    ) -> None:
        super().__init__()
        if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ValueError(f"batch_size: expected an integer of 1 or more, got {batch_size!r}")
        self.image_data_generator = generator
        self.n = self.samples = count
        self.batch_size, self.shuffle, self.seed = int(batch_size), shuffle, seed
        self.save_to_dir, self.save_prefix, self.save_format = saving
        self._random = np.random.default_rng(next_seed() if seed is None else seed)
        self._order = np.arange(count)
        self._given = np.zeros(count, np.int64)
        self._next = 0
        self._lock = threading.Lock()
        self.on_epoch_end()

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def on_epoch_end(self) -> None:
        """Shuffles for the next round."""
        if self.shuffle:
            self._order = self._random.permutation(self.n)

    def reset(self) -> None:
        """Begins a round."""
        self._next = 0

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the order, and the generators of those to come and of the changes."""
        state = {"order": self._order, "given": self._given.copy(), "random": self._random.bit_generator.state}
        return state | {"changes": self.image_data_generator._random.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Puts back what `get_state` gave."""
        if len(state["order"]) != self.n:
            raise ValueError(f"expected {len(state['order'])} images, as there were, got {self.n}")
        self._order = np.asarray(state["order"])
        self._given[:] = state.get("given", 0)  # walks count along
        self._random.bit_generator.state = state["random"]
        self.image_data_generator._random.bit_generator.state = state["changes"]

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise ValueError(f"batch {index}: expected a number below {len(self)}")
        return self._batch(self._order[index * self.batch_size : (index + 1) * self.batch_size])

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._lock:
            if self._next == 0:
                self.on_epoch_end()
            chosen = self._order[self._next * self.batch_size : (self._next + 1) * self.batch_size]
            self._next = (self._next + 1) % len(self)
        return self._batch(chosen)

    def next(self) -> Any:
        """The next batch."""
        return self.__next__()

    def _batch(self, chosen: np.ndarray) -> Any:
        generator = self.image_data_generator
        images = []
        for number in chosen:
            x = np.array(self._image(int(number)), dtype=generator.dtype)
            x = generator.apply_transform(x, generator.get_random_transform(x.shape, self._seed_of(int(number))))
            images.append(np.asarray(generator.standardize(x), dtype=generator.dtype))
        batch = np.stack(images)
        if self.save_to_dir:
            self._save(batch, chosen)
        return self._with_targets(batch, chosen)

    def _seed_of(self, number: int) -> list[int] | None:
        """What the change of an image is drawn by: another one each time that it is given."""
        if self.seed is None:
            return None
        self._given[number] += 1
        return [self.seed, number, int(self._given[number])]

    def _save(self, batch: np.ndarray, chosen: np.ndarray) -> None:
        for image, number in zip(batch, chosen, strict=True):
            name = f"{self.save_prefix}_{number}_{np.random.default_rng().integers(10**7)}.{self.save_format}"
            array_to_img(image, self.image_data_generator.data_format, scale=True).save(
                os.path.join(self.save_to_dir, name)
            )

    def _image(self, number: int) -> np.ndarray:
        raise NotImplementedError

    def _with_targets(self, batch: np.ndarray, chosen: np.ndarray) -> Any:
        raise NotImplementedError


class ArrayIterator(ImageIterator):
    """Batches of arrays."""

    def __init__(
        self,
        generator: Any,
        x: Any,
        y: Any,
        batch_size: int,
        shuffle: bool,
        sample_weight: Any,
        seed: int | None,
        saving: Saving,
        ignore_class_split: bool,
        subset: str | None,
    ) -> None:
        more: list[np.ndarray] = []
        if isinstance(x, (tuple, list)) and not isinstance(x[0], (int, float)) and len(x) == 2:
            given = x[1] if isinstance(x[1], list) else [x[1]]
            x, more = x[0], [np.asarray(each) for each in given]
        x = np.asarray(x)
        arrays = {"y": y, "sample_weight": sample_weight, **{f"x[1][{i}]": each for i, each in enumerate(more)}}
        for name, array in arrays.items():
            if array is not None and len(array) != len(x):
                raise ValueError(f"flow: {name}: expected {len(x)} entries, one for each image, got {len(array)}")
        if x.ndim != 4:
            raise ValueError(f"flow: x: expected images of 4 dimensions, got shape {x.shape}")
        part = self._part(generator, len(x), y, subset, ignore_class_split)
        self.x = np.asarray(x[part], dtype=generator.dtype)
        self.x_misc = [each[part] for each in more]
        self.y = None if y is None else np.asarray(y)[part]
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight)[part]
        super().__init__(generator, len(self.x), batch_size, shuffle, seed, saving)

    @staticmethod
    def _part(generator: Any, count: int, y: Any, subset: str | None, ignore_class_split: bool) -> slice:
        if subset is None:
            return slice(None)
        at = split_of(generator, subset, count)
        if y is not None and not ignore_class_split:
            labels = np.asarray(y)
            if not np.array_equal(np.unique(labels[:at]), np.unique(labels[at:])):
                raise ValueError(
                    "flow: training and validation subsets have different classes: shuffle the data before, or pass "
                    "ignore_class_split=True"
                )
        return slice(0, at) if subset == "validation" else slice(at, None)

    def _image(self, number: int) -> np.ndarray:
        return self.x[number]

    def _with_targets(self, batch: np.ndarray, chosen: np.ndarray) -> Any:
        x = [batch, *(each[chosen] for each in self.x_misc)] if self.x_misc else batch
        if self.y is None:
            return x
        parts = (x, self.y[chosen])
        return parts if self.sample_weight is None else (*parts, self.sample_weight[chosen])


class FileIterator(ImageIterator):
    """Batches of files.  filepaths; classes: a number for each; class_indices: numbers by name."""

    filepaths: list[str]
    classes: Any
    class_indices: dict[str, int]
    class_mode: str | None
    weights: np.ndarray | None = None
    _pydt_class_names = property(lambda self: tuple(self.class_indices))

    def _reads(self, generator: Any, reading: Reading) -> None:
        self.target_size, self.color_mode, self.interpolation, self.keep_aspect_ratio = reading
        if self.color_mode not in _CHANNELS:
            raise ValueError(f"color_mode: expected one of {', '.join(_CHANNELS)}, got {self.color_mode!r}")
        channels = (_CHANNELS[self.color_mode],)
        last = generator.data_format == "channels_last"
        self.image_shape = self.target_size + channels if last else channels + self.target_size

    @property
    def labels(self) -> Any:
        """The classes of all files."""
        return self.classes

    @property
    def num_classes(self) -> int:
        return len(self.class_indices)

    def _image(self, number: int) -> np.ndarray:
        image = load_img(
            self.filepaths[number],
            color_mode=self.color_mode,
            target_size=self.target_size,
            interpolation=self.interpolation,
            keep_aspect_ratio=self.keep_aspect_ratio,
        )
        return img_to_array(image, data_format=self.image_data_generator.data_format)

    def _with_targets(self, batch: np.ndarray, chosen: np.ndarray) -> Any:
        if self.class_mode is None:
            return batch
        y = self._targets(batch, chosen)
        return (batch, y) if self.weights is None else (batch, y, self.weights[chosen])

    def _targets(self, batch: np.ndarray, chosen: np.ndarray) -> Any:
        dtype = self.image_data_generator.dtype
        if self.class_mode == "input":
            return batch.copy()
        if self.class_mode in ("binary", "sparse"):
            return np.asarray(self.classes)[chosen].astype(dtype)
        if self.class_mode == "categorical":
            y = np.zeros((len(chosen), self.num_classes), dtype)
            for row, number in enumerate(chosen):
                y[row, self.classes[number]] = 1
            return y
        if self.class_mode == "multi_output":
            return [column[chosen] for column in self.classes]
        return self.classes[chosen]  # raw


class DirectoryIterator(FileIterator):
    """Batches of the images in a folder with one folder for each class.  filenames: relative to the folder."""

    def __init__(
        self,
        generator: Any,
        directory: Any,
        reading: Reading,
        classes: Sequence[str] | None,
        class_mode: str | None,
        batch_size: int,
        shuffle: bool,
        seed: int | None,
        saving: Saving,
        follow_links: bool,
        subset: str | None,
    ) -> None:
        if class_mode not in CLASS_MODES:
            raise ValueError(f"class_mode: expected one of {', '.join(map(str, CLASS_MODES))}, got {class_mode!r}")
        self._reads(generator, reading)
        self.directory, self.class_mode = directory, class_mode
        root = Path(directory)
        if not root.is_dir():
            raise ValueError(f"directory: expected a folder, got {str(directory)!r}")
        names = list(classes) if classes else sorted(entry.name for entry in root.iterdir() if entry.is_dir())
        self.class_indices = {name: number for number, name in enumerate(names)}
        self.filenames: list[str] = []
        numbers: list[int] = []
        for name, number in self.class_indices.items():
            found = _files(root / name, follow_links)
            if subset is not None:
                at = split_of(generator, subset, len(found))
                found = found[:at] if subset == "validation" else found[at:]
            self.filenames += [os.path.relpath(path, root) for path in found]
            numbers += [number] * len(found)
        self.classes = np.array(numbers, dtype="int32")
        self.filepaths = [os.path.join(directory, name) for name in self.filenames]
        print(f"Found {len(self.filenames)} images belonging to {len(names)} classes.")
        super().__init__(generator, len(self.filenames), batch_size, shuffle, seed, saving)


def split_of(generator: Any, subset: str, count: int) -> int:
    """How many of so many are for validation, which come first."""
    if subset not in ("training", "validation"):
        raise ValueError(f"subset: expected 'training' or 'validation', got {subset!r}")
    return int(count * generator.validation_split)


def _files(folder: Path, follow_links: bool) -> list[str]:
    walk = sorted(os.walk(folder, followlinks=follow_links), key=lambda entry: entry[0])
    return [
        os.path.join(at, name) for at, _, names in walk for name in sorted(names) if name.lower().endswith(SUFFIXES)
    ]
