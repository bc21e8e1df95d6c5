"""Batches of images from a folder, decoded by Pillow (the `images` extra) in background threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pydtconv import config
from pydtconv.files.class_folders import one_of, parts_of
from pydtconv.files.image_batches import ImageFolder
from pydtconv.files.image_cache import cached
from pydtconv.files.image_decoding import INTERPOLATIONS, MODES, REDUCED, Decoder
from pydtconv.files.pixels import pillow

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png")


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
    one_of("color_mode", color_mode, tuple(MODES))
    one_of("interpolation", interpolation, INTERPOLATIONS)
    one_of("on_error", on_error, ("raise", "skip"))
    one_of("reduced", reduced, tuple(REDUCED))
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("expected crop_to_aspect_ratio or pad_to_aspect_ratio, got both")
    one_of("data_format", data_format, (None, "channels_last", "channels_first"))
    parts, names = parts_of(
        directory, SUFFIXES, labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links,
        format, verbose,
    )  # fmt: skip
    size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
    if len(size) != 2 or min(size) < 1:
        raise ValueError(f"image_size: expected (height, width), got {image_size!r}")
    fit = "crop" if crop_to_aspect_ratio else "pad" if pad_to_aspect_ratio else "stretch"
    decoder = Decoder(size, color_mode, interpolation, fit, reduced)
    read = decoder if cache is None else cached(decoder, sum(len(part.files) for part in parts), cache, verbose)
    workers = config.num_threads() if workers is None else workers
    folders = [
        ImageFolder(
            part.files, part.numbers, names, label_mode, decoder, read, batch_size, part.shuffled, seed, on_error,
            workers, data_format,
        )
        for part in parts
    ]  # fmt: skip
    return folders[0] if len(folders) == 1 else tuple(folders)
