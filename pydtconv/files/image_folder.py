"""Batches of images from a folder, decoded by Pillow (the `images` extra) in background threads."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pydtconv import config
from pydtconv.files.pixels import eight_bits, opened, pillow
from pydtconv.files.reading import BadFileError, open_regular
from pydtconv.support.dataset import PyDataset
from pydtconv.support.random import next_seed

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
MODES = {"rgb": ("RGB", 3), "rgba": ("RGBA", 4), "grayscale": ("L", 1)}
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
LABEL_MODES = ("int", "categorical", "binary", None)


def image_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: str | Sequence[int] | None = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    color_mode: str = "rgb",
    batch_size: int | None = 32,
    image_size: int | tuple[int, int] = (256, 256),
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    interpolation: str = "bilinear",
    follow_links: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    data_format: str | None = None,
    format: str = "tf",
    verbose: bool = True,
    on_error: str = "raise",
    workers: int = 2,
) -> Any:
    """The images below a folder with one folder for each class, in batches, with the arguments of Keras's function.

    labels: "inferred" (from the folders), one integer for each file in the order of their paths, or None.
    label_mode: "int", "categorical" (one-hot), "binary" (0 or 1, float) or None (images without labels).
    batch_size: None gives single images, without the axis of the batch.
    subset: "training" or "validation", of a validation_split from 0 to 1; both need the same seed; or "both", a pair.
    crop_to_aspect_ratio: cut off what would be distorted, instead of stretching the image; pad_to_aspect_ratio: put
    black around it.  data_format: None takes that of `config.image_data_format`.  format: only "tf", Keras's default.
    on_error: "raise" a ValueError that names the bad file, or "skip" it: a warning names it and its batch is smaller.
    workers: threads that decode; they are at most four batches ahead.

    Raises ValueError for arguments and folders that do not fit and ImportError where Pillow is missing.
    """
    pillow()
    root = Path(directory)
    if not root.is_dir():
        raise ValueError(f"directory: expected a folder, got {str(directory)!r}")
    _one_of("color_mode", color_mode, tuple(MODES))
    _one_of("interpolation", interpolation, INTERPOLATIONS)
    _one_of("label_mode", label_mode, LABEL_MODES)
    _one_of("on_error", on_error, ("raise", "skip"))
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("expected crop_to_aspect_ratio or pad_to_aspect_ratio, got both")
    _one_of("data_format", data_format, (None, "channels_last", "channels_first"))
    _one_of("format", format, ("tf",))
    if (validation_split is None) != (subset is None):
        raise ValueError(f"expected validation_split and subset or neither, got {validation_split!r} and {subset!r}")
    if subset is not None:
        _one_of("subset", subset, ("training", "validation", "both"))
        if not 0 < validation_split < 1:  # type: ignore[operator]
            raise ValueError(f"validation_split: expected a number between 0 and 1, got {validation_split!r}")
        if shuffle and seed is None:
            raise ValueError("seed: expected a number, so that both subsets are of one shuffling; got None")
    files, numbers, names = _listed(root, labels, class_names, follow_links)
    if label_mode == "binary" and len(names) != 2:
        raise ValueError(f"label_mode='binary': expected two classes, got {len(names)}: {', '.join(names)}")
    order = np.arange(len(files))
    if shuffle and subset is not None:
        np.random.default_rng(seed).shuffle(order)
    parts = {"": order}
    if subset is not None:
        at = len(files) - int(len(files) * validation_split)  # type: ignore[operator]
        parts = {"training": order[:at], "validation": order[at:]}
        if subset != "both":
            parts = {subset: parts[subset]}
        for part, chosen in parts.items():
            if not len(chosen):
                raise ValueError(f"validation_split={validation_split!r} leaves no file for the {part} of {len(files)}")
    if verbose:
        used = " and ".join(f"{len(chosen)} for {part}" for part, chosen in parts.items() if part)
        print(f"Found {len(files)} files belonging to {len(names)} classes{used and f', using {used}'}.")
    folders = [
        ImageFolder(
            [files[i] for i in chosen],
            None if label_mode is None or numbers is None else numbers[chosen],
            names,
            label_mode,
            color_mode,
            batch_size,
            (image_size, image_size) if isinstance(image_size, int) else image_size,
            shuffle and not (subset == "both" and part == "validation"),
            seed,
            interpolation,
            "crop" if crop_to_aspect_ratio else "pad" if pad_to_aspect_ratio else "stretch",
            on_error,
            workers,
            data_format,
        )
        for part, chosen in parts.items()
    ]
    return folders[0] if len(folders) == 1 else tuple(folders)


class ImageFolder(PyDataset):
    """Batches (x, y) of files: x float32 (n, height, width, channels) from 0 to 255, y by label_mode, or x alone.

    class_names: names by number, None without labels.  file_paths: the files.  With shuffle, each epoch has an order of
    its own.
    """

    _pydt_order = property(lambda self: self._order)  # which all processes must have alike

    def __init__(
        self,
        file_paths: list[Path],
        numbers: np.ndarray | None,
        class_names: list[str],
        label_mode: str | None,
        color_mode: str,
        batch_size: int | None,
        image_size: tuple[int, int],
        shuffle: bool,
        seed: int | None,
        interpolation: str,
        fit: str,
        on_error: str,
        workers: int,
        data_format: str | None = None,
    ) -> None:
        if len(image_size) != 2 or min(image_size) < 1:
            raise ValueError(f"image_size: expected (height, width), got {image_size!r}")
        self._single = batch_size is None
        batch_size = 1 if batch_size is None else batch_size
        for name, value in (("batch_size", batch_size), ("workers", workers)):
            if value < 1:
                raise ValueError(f"{name}: expected an integer of 1 or more, got {value!r}")
        super().__init__(workers=workers, max_queue_size=4)
        self.file_paths, self.class_names = [str(path) for path in file_paths], class_names or None
        self.image_size, self.batch_size = (int(image_size[0]), int(image_size[1])), batch_size
        self._numbers, self._label_mode, self._color_mode = numbers, label_mode, color_mode
        self._interpolation, self._fit, self._on_error = interpolation, fit, on_error
        self._data_format = data_format
        self._order = np.arange(len(file_paths))
        self._random = np.random.default_rng(next_seed() if seed is None else seed) if shuffle else None
        self.on_epoch_end()

    def __len__(self) -> int:
        return -(-len(self._order) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        """An epoch for whoever walks through by himself; the next one has another order."""
        yield from super().__iter__()
        self.on_epoch_end()

    def on_epoch_end(self) -> None:
        """Shuffles for the next epoch."""
        if self._random is not None:
            self._order = self._random.permutation(len(self._order))

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the order of this epoch and the generator of those to come."""
        return {"order": self._order, "random": None if self._random is None else self._random.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Puts back what `get_state` gave.  Raises ValueError where it is of another number of files."""
        if len(state["order"]) != len(self._order):
            raise ValueError(f"expected {len(state['order'])} images, as there were, got {len(self._order)}")
        if (state["random"] is None) != (self._random is None):
            raise ValueError(f"shuffle: expected {self._random is None}, as it was, got {self._random is not None}")
        order = np.asarray(state["order"])
        if order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(len(order))):
            raise ValueError(f"order: expected each number below {len(order)} once, got {order!r:.100}")
        self._order = order
        if self._random is not None:
            self._random.bit_generator.state = state["random"]

    def digest(self) -> str:
        """Tells data sets of other files, classes or settings from this one; folders above those of classes may differ.

        Of many files, 4096 from the first to the last count.
        """
        chosen = np.unique(np.linspace(0, len(self.file_paths) - 1, 4096).astype(np.int64))
        names = ["/".join(Path(self.file_paths[i]).parts[-2:]) for i in chosen]
        numbers = None if self._numbers is None else self._numbers[chosen].tolist()
        settings = (self.class_names, self.image_size, self._label_mode, self._color_mode, self._interpolation)
        told = repr((len(self.file_paths), names, numbers, *settings, self._fit, self._data_format, self._on_error))
        return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()

    def __getitem__(self, index: int) -> Any:
        """One batch.  Raises ValueError that names a bad file, or all of them where none of a batch could be read."""
        chosen = self._order[index * self.batch_size : (index + 1) * self.batch_size]
        batch = self._read(chosen)
        if not len(batch[0]):
            raise ValueError(f"no image of batch {index} could be read, the first is {self.file_paths[chosen[0]]}")
        if self._single:
            batch = tuple(part[0] for part in batch)
        return batch[0] if len(batch) == 1 else batch

    def read_share(self, index: int, share: Callable[[int], slice]) -> Any:
        """The part of a batch that `share` says, given the size of the batch; only its files are read.

        It may be empty, as it may where all of its files are bad and left out.
        """
        chosen = self._order[index * self.batch_size : (index + 1) * self.batch_size]
        batch = self._read(chosen[share(len(chosen))])
        return batch[0] if len(batch) == 1 else batch

    def _read(self, chosen: np.ndarray) -> tuple[np.ndarray, ...]:
        mode, channels = MODES[self._color_mode]
        x = np.empty((len(chosen), *self.image_size, channels), np.float32)
        kept: list[int] = []
        for number in chosen:
            try:
                x[len(kept)] = self._decoded(self.file_paths[number], mode).reshape(x.shape[1:])
            except ValueError as error:
                if self._on_error == "raise":
                    raise
                warnings.warn(f"skipped {error}", UserWarning, stacklevel=3)
                continue
            kept.append(int(number))
        x = x[: len(kept)]
        if (self._data_format or config.image_data_format()) == "channels_first":
            x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
        return (x,) if self._numbers is None else (x, self._targets(self._numbers[kept]))

    def _targets(self, numbers: np.ndarray) -> np.ndarray:
        if self._label_mode == "categorical":
            return np.eye(len(self.class_names or ()), dtype=np.float32)[numbers]
        return numbers.astype(np.float32)[:, None] if self._label_mode == "binary" else numbers.astype(np.int32)

    def _decoded(self, path: str, mode: str) -> np.ndarray:
        """(height, width[, channels]) uint8.  Raises BadFileError that names the file and where reading stopped."""
        image_module = pillow()
        height, width = self.image_size
        # decoders take sizes that a file claims from memory before they read: of data in memory they get what is there
        with _opened(path) as raw, io.BytesIO(raw.read()) as file:
            pixels = eight_bits(opened(file, path, draft=(mode, (width, height))), mode)
        box = None
        resampling = getattr(image_module.Resampling, self._interpolation.upper())
        if self._fit == "pad":
            scale = max(pixels.width / width, pixels.height / height)
            whole = image_module.new(mode, (round(width * scale), round(height * scale)))
            whole.paste(pixels, ((whole.width - pixels.width) // 2, (whole.height - pixels.height) // 2))
            pixels = whole
        if self._fit == "crop":
            scale = min(pixels.width / width, pixels.height / height)
            left, top = (pixels.width - width * scale) / 2, (pixels.height - height * scale) / 2
            box = (left, top, left + width * scale, top + height * scale)
        return np.asarray(pixels.resize((width, height), resampling, box))


def _listed(
    root: Path, labels: Any, class_names: Sequence[str] | None, follow_links: bool
) -> tuple[list[Path], np.ndarray | None, list[str]]:
    """Files in the order of their paths, their class numbers, and the names of the classes."""
    inferred = isinstance(labels, str)
    if inferred and labels != "inferred":
        raise ValueError(f"labels: expected 'inferred', a list of integers or None, got {labels!r}")
    if not inferred:
        if class_names is not None:
            raise ValueError(f"class_names: expected None where labels are not inferred, got {list(class_names)}")
        files = _images(root, follow_links)
        if labels is None:
            return files, None, []
        numbers = np.asarray(labels, np.int64)
        if len(numbers) != len(files):
            raise ValueError(f"labels: expected {len(files)} numbers, one for each image, got {len(numbers)}")
        return files, numbers, [str(number) for number in range(int(numbers.max()) + 1)]
    found = sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if class_names is not None and not set(class_names) <= set(found):
        raise ValueError(f"class_names: expected folders of {root} ({', '.join(found)}), got {list(class_names)}")
    names = list(class_names or found)
    if len(set(names)) < len(names):
        raise ValueError(f"class_names: expected each folder once, got {names}")
    by_class = [_images(root / name, follow_links) for name in names]
    files = [path for part in by_class for path in part]
    if not files:
        raise ValueError(f"{root}: expected one folder for each class with images in it, found none")
    return files, np.repeat(np.arange(len(names)), [len(part) for part in by_class]), names


def _images(folder: Path, follow_links: bool) -> list[Path]:
    """Folder by folder, in the order in which Keras takes labels."""
    walk = sorted(os.walk(folder, followlinks=follow_links), key=lambda entry: entry[0])
    return [Path(at, name) for at, _, files in walk for name in sorted(files) if name.lower().endswith(SUFFIXES)]


def _opened(path: str) -> BinaryIO:
    """The file.  Raises BadFileError where it is a broken link, a pipe, or may not be read."""
    try:
        return open_regular(path)
    except BadFileError:
        raise
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):  # of the process, not of the file
            raise
        raise BadFileError(f"{path}: cannot be opened: {os.strerror(error.errno or 0)}") from error


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")
