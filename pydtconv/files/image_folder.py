"""Batches of images from a folder, decoded by Pillow (the `images` extra) in background threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.files.image_batches import ImageFolder
from pydtconv.files.image_cache import cached
from pydtconv.files.image_decoding import INTERPOLATIONS, MODES, REDUCED, Decoder
from pydtconv.files.pixels import pillow

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
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
    workers: int | None = None,
    reduced: bool | str = "auto",
    cache: str | os.PathLike[str] | None = None,
) -> Any:
    """The images below a folder with one folder for each class, in batches, with the arguments of Keras's function.

    labels: "inferred" (from the folders), one integer for each file in the order of their paths, or None.
    label_mode: "int", "categorical" (one-hot), "binary" (0 or 1, float) or None (images without labels).
    batch_size: None gives single images, without the axis of the batch.
    subset: "training" or "validation", of a validation_split from 0 to 1; both need the same seed; or "both", a pair.
    crop_to_aspect_ratio: cut off what would be distorted, instead of stretching the image; pad_to_aspect_ratio: put
    black around it.  data_format: None takes that of `config.image_data_format`.  format: only "tf", Keras's default.
    on_error: "raise" a ValueError that names the bad file, or "skip" it: a warning names it and its batch is smaller.
    workers: threads that decode the images of a batch together; they are at most four batches ahead.  None: as
    many as kernels use, `config.num_threads()`.
    reduced: whether JPEGs are decoded with half, a quarter or an eighth of their rows and columns, as libjpeg can, and
    then resized.  "auto": where at least twice the rows and columns of image_size are left; pixels of photographs then
    differ from those of a whole decoding by 2 of 255 (root of the mean square).  True: where at least those of
    image_size are left; they differ by 2 to 6.  False: never.
    cache: keeps images as they are decoded and resized, for the epochs to come: "memory", or a folder for later runs,
    too, which several processes may share (see `docs/guides/data.md`).

    Raises ValueError for arguments and folders that do not fit, MemoryError and OSError where the cache would not, and
    ImportError where Pillow is missing.
    """
    pillow()
    root = Path(directory)
    if not root.is_dir():
        raise ValueError(f"directory: expected a folder, got {str(directory)!r}")
    _one_of("color_mode", color_mode, tuple(MODES))
    _one_of("interpolation", interpolation, INTERPOLATIONS)
    _one_of("label_mode", label_mode, LABEL_MODES)
    _one_of("on_error", on_error, ("raise", "skip"))
    _one_of("reduced", reduced, tuple(REDUCED))
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
    size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
    if len(size) != 2 or min(size) < 1:
        raise ValueError(f"image_size: expected (height, width), got {image_size!r}")
    fit = "crop" if crop_to_aspect_ratio else "pad" if pad_to_aspect_ratio else "stretch"
    decoder = Decoder(size, color_mode, interpolation, fit, reduced)
    read = decoder if cache is None else cached(decoder, sum(map(len, parts.values())), cache, verbose)
    folders = [
        ImageFolder(
            [files[i] for i in chosen],
            None if label_mode is None or numbers is None else numbers[chosen],
            names,
            label_mode,
            decoder,
            read,
            batch_size,
            shuffle and not (subset == "both" and part == "validation"),
            seed,
            on_error,
            config.num_threads() if workers is None else workers,
            data_format,
        )
        for part, chosen in parts.items()
    ]
    return folders[0] if len(folders) == 1 else tuple(folders)


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


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")
