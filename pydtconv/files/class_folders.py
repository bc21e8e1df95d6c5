"""Folders with one folder for each class: their files, and which of them are for training and validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LABEL_MODES = ("int", "categorical", "binary", None)


class Part(NamedTuple):
    """Files, the number of the class of each where there are labels, and whether they are shuffled."""

    files: list[Path]
    numbers: np.ndarray | None
    shuffled: bool


def parts_of(
    directory: str | os.PathLike[str],
    suffixes: tuple[str, ...],
    labels: Any,
    label_mode: str | None,
    class_names: Sequence[str] | None,
    shuffle: bool,
    seed: int | None,
    validation_split: float | None,
    subset: str | None,
    follow_links: bool,
    format: str,
    verbose: bool,
) -> tuple[list[Part], list[str]]:
    """The files of each subset that is asked for, and the names of the classes; arguments as those of Keras.

    Raises ValueError for arguments and folders that do not fit.
    """
    root = Path(directory)
    if not root.is_dir():
        raise ValueError(f"directory: expected a folder, got {str(directory)!r}")
    one_of("label_mode", label_mode, LABEL_MODES)
    one_of("format", format, ("tf",))
    if (validation_split is None) != (subset is None):
        raise ValueError(f"expected validation_split and subset or neither, got {validation_split!r} and {subset!r}")
    if subset is not None:
        one_of("subset", subset, ("training", "validation", "both"))
        if not 0 < validation_split < 1:  # type: ignore[operator]
            raise ValueError(f"validation_split: expected a number between 0 and 1, got {validation_split!r}")
        if shuffle and seed is None:
            raise ValueError("seed: expected a number, so that both subsets are of one shuffling; got None")
    files, numbers, names = _listed(root, labels, class_names, follow_links, suffixes)
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
    found = [
        Part(
            [files[i] for i in chosen],
            None if label_mode is None or numbers is None else numbers[chosen],
            shuffle and not (subset == "both" and part == "validation"),
        )
        for part, chosen in parts.items()
    ]
    return found, names


def _listed(
    root: Path, labels: Any, class_names: Sequence[str] | None, follow_links: bool, suffixes: tuple[str, ...]
) -> tuple[list[Path], np.ndarray | None, list[str]]:
    """Files in the order of their paths, their class numbers, and the names of the classes."""
    inferred = isinstance(labels, str)
    if inferred and labels != "inferred":
        raise ValueError(f"labels: expected 'inferred', a list of integers or None, got {labels!r}")
    if not inferred:
        if class_names is not None:
            raise ValueError(f"class_names: expected None where labels are not inferred, got {list(class_names)}")
        files = _files(root, follow_links, suffixes)
        if labels is None:
            return files, None, []
        numbers = np.asarray(labels, np.int64)
        if len(numbers) != len(files):
            raise ValueError(f"labels: expected {len(files)} numbers, one for each file, got {len(numbers)}")
        return files, numbers, [str(number) for number in range(int(numbers.max()) + 1)]
    found = sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if class_names is not None and not set(class_names) <= set(found):
        raise ValueError(f"class_names: expected folders of {root} ({', '.join(found)}), got {list(class_names)}")
    names = list(class_names or found)
    if len(set(names)) < len(names):
        raise ValueError(f"class_names: expected each folder once, got {names}")
    by_class = [_files(root / name, follow_links, suffixes) for name in names]
    files = [path for part in by_class for path in part]
    if not files:
        raise ValueError(
            f"{root}: expected one folder for each class with {' '.join(suffixes)} files in it, found none"
        )
    return files, np.repeat(np.arange(len(names)), [len(part) for part in by_class]), names


def _files(folder: Path, follow_links: bool, suffixes: tuple[str, ...]) -> list[Path]:
    """Folder by folder, in the order in which Keras takes labels."""
    walk = sorted(os.walk(folder, followlinks=follow_links), key=lambda entry: entry[0])
    return [Path(at, name) for at, _, files in walk for name in sorted(files) if name.lower().endswith(suffixes)]


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raises ValueError for what is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")
