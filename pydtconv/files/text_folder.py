"""Batches of texts from a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.files.class_folders import parts_of
from pydtconv.files.file_batches import FileBatches, Share
from pydtconv.files.reading import open_regular
from pydtconv.support.workers import Submit


def text_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: str | Sequence[int] | None = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    max_length: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """The .txt files below a folder with one folder for each class, in batches of bytes, with Keras's arguments.

    labels, label_mode, class_names, batch_size, shuffle, seed, validation_split, subset, follow_links and format are
    those of `image_dataset_from_directory`.  max_length: bytes of each text, None for all.

    Raises ValueError for arguments and folders that do not fit.
    """
    if max_length is not None and (not isinstance(max_length, int) or max_length < 1):
        raise ValueError(f"max_length: expected None or an integer of 1 or more, got {max_length!r}")
    parts, names = parts_of(
        directory, (".txt",), labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links,
        format, verbose,
    )  # fmt: skip
    folders = [
        TextFolder(part.files, part.numbers, names, label_mode, batch_size, part.shuffled, seed, 1, (max_length,))
        for part in parts
    ]
    return folders[0] if len(folders) == 1 else tuple(folders)


class TextFolder(FileBatches):
    """Batches (x, y) of files: x the contents as bytes (n,), y by label_mode, or x alone."""

    def _begin(self, index: int, files: list[str], submit: Submit, share: Share | None) -> Callable[[], Any]:
        (length,) = self._settings
        texts = np.empty(len(files), object)
        for i, path in enumerate(files):
            with open_regular(path) as file:
                texts[i] = file.read(-1 if length is None else length)
        return lambda: (texts, list(range(len(files))))
