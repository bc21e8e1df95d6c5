"""Texts as lists of the numbers of their words, in an .npz file of pickled lists, as Keras lays them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.datasets.pickles import as_objects, load_lists
from pydtconv.datasets.source import Download, obtain
from pydtconv.datasets.tables import ORIGIN
from pydtconv.files.archives import Archive
from pydtconv.files.reading import BadFileError, parsing

_LIMIT = 1 << 30


def read(dataset: str, path: str, digest: str, names: Sequence[str]) -> list[np.ndarray]:
    """The arrays of the file, found or downloaded: lists of numbers of arrays named x..., numbers of others.

    Raises FileNotFoundError, and BadFileError for a file of others.
    """
    (file,) = obtain(dataset, ([path],), [Download(ORIGIN + path, digest, path)])
    with Archive(file, f"an .npz file with {', '.join(names)}") as archive:
        return [_lists(archive, name) if name.startswith("x") else archive.array(name) for name in names]


def _lists(archive: Archive, name: str) -> np.ndarray:
    data = archive.read(f"{name}.npy", _LIMIT)
    with parsing(f"{archive.path}: {name}", "an array of lists of numbers"):
        stream = io.BytesIO(data)
        if np.lib.format.read_magic(stream) != (1, 0):
            raise BadFileError("expected version 1.0 of the .npy format")
        _, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if dtype.kind != "O":
            raise BadFileError(f"expected lists, got {dtype}")
        return load_lists(stream.read())


def numbered(
    lists: Any,
    labels: np.ndarray,
    start_char: int | None,
    index_from: int | None,
    maxlen: int | None,
) -> tuple[list[list[int]], np.ndarray]:
    """The lists with a number in front, their words counted from another one on, and without those of maxlen or more.

    Raises ValueError where none is left.
    """
    first, shift = [] if start_char is None else [start_char], index_from or 0
    if start_char is not None and index_from is None:
        raise ValueError("load_data: index_from: expected a number beside start_char, got None")
    found = [[*first, *(word + shift for word in each)] for each in lists]
    if maxlen:
        kept = [i for i, each in enumerate(found) if len(each) < maxlen]
        if not kept:
            raise ValueError(f"load_data: maxlen: expected more than the shortest text has, got {maxlen}")
        found, labels = [found[i] for i in kept], labels[kept]
    return found, labels


def limited(lists: list[list[int]], num_words: int | None, skip_top: int, oov_char: int | None) -> np.ndarray:
    """The lists with the words from skip_top up to num_words; others are oov_char, or are left out where it is None."""
    top = num_words or max((max(each, default=0) for each in lists), default=0)
    if oov_char is None:
        cut = [[word for word in each if skip_top <= word < top] for each in lists]
    else:
        cut = [[word if skip_top <= word < top else oov_char for word in each] for each in lists]
    return as_objects(cut)


def word_index(dataset: str, path: str, digest: str) -> dict[str, int]:
    """The number of each word, from 1 on by how often it is there."""
    (file,) = obtain(dataset, ([path],), [Download(ORIGIN + path, digest, path)])
    with parsing(file, "numbers by words"):
        found = json.loads(file.read_bytes())
        if not isinstance(found, dict) or not all(isinstance(each, int) for each in found.values()):
            raise BadFileError("expected numbers by words")
    return found
