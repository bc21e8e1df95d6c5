"""Pictures of a training run, drawn by matplotlib (the `plot` extra)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydtconv.files.whole_file import check_writable, write_alone


def plot_learning_curve(history: Any, path: str | os.PathLike[str], title: str = "") -> str:
    """Draws each quantity of a `History` over the epochs, training and validation in one panel, into an image file.

    history: what `fit` returned, or its `history` dict: name -> one value per epoch.
    Returns the absolute path.  Raises ImportError when matplotlib is missing, ValueError when there is no epoch.
    """
    figure = figure_class("plot_learning_curve")
    values: Mapping[str, Sequence[float]] = getattr(history, "history", history)
    names = [name for name in values if not name.startswith("val_") and name != "learning_rate"]
    if not names or not len(values[names[0]]):
        raise ValueError("plot_learning_curve: expected a history of one epoch or more, got an empty one")
    picture = figure(figsize=(4.8 * len(names), 3.6), layout="constrained")
    for axes, name in zip(picture.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for label, key in (("training", name), ("validation", f"val_{name}")):
            if key in values:
                axes.plot(range(1, len(values[key]) + 1), values[key], marker="o", markersize=3, label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel(name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
        axes.legend()
    if title:
        picture.suptitle(title)
    return str(save_figure(picture, path, 120))


def plot_confusion_matrix(counts: Any, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> str:
    """Draws how many samples of each class (rows) are taken for which (columns) into an image file.

    counts: integers (classes, classes).  names: of the classes; numbers are written into up to 20.
    Returns the absolute path.  Raises ImportError when matplotlib is missing.
    """
    classes = len(counts)
    side = max(3.2, min(0.45 * classes + 1.6, 16))
    picture = figure_class("plot_confusion_matrix")(figsize=(side + 0.8, side), layout="constrained")
    axes = picture.subplots()
    picture.colorbar(axes.imshow(counts, cmap="Blues", vmin=0), ax=axes, shrink=0.8)
    axes.set_xlabel("taken for")
    axes.set_ylabel("class")
    if names is not None:
        axes.set_xticks(range(classes), names, rotation=90)
        axes.set_yticks(range(classes), names)
    for row in range(classes if classes <= 20 else 0):
        for column, count in enumerate(counts[row]):
            colour = "white" if 2 * count > counts.max() else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=colour)
    return str(save_figure(picture, path, 120))


def plot_learning_rates(rates: Any, losses: Any, best: float, path: str | os.PathLike[str]) -> str:
    """Draws losses over learning rates, with the best one marked, into an image file.  Returns the absolute path."""
    picture = figure_class("plot_learning_rates")(figsize=(4.8, 3.6), layout="constrained")
    axes = picture.subplots()
    axes.semilogx(rates, losses)
    axes.axvline(best, color="black", linestyle="--", label=f"{best:.1e}")
    axes.set_xlabel("learning rate")
    axes.set_ylabel("loss")
    axes.grid(alpha=0.3)
    axes.legend()
    return str(save_figure(picture, path, 120))


def save_figure(figure: Any, path: str | os.PathLike[str], dpi: int) -> Path:
    """Writes a picture whole or not at all; its suffix says the format.  Returns the absolute path.

    Raises OSError that names the file, and ValueError for an unknown format.
    """
    target, kind = _target(path)
    write_alone(target, lambda file: figure.savefig(file, dpi=dpi, format=kind))
    return target


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raises, before anything is computed, what drawing into this file would raise at the end.

    ImportError without matplotlib, ValueError for an unknown format, OSError where the file cannot be written.
    """
    target, kind = _target(path)
    known = figure_class("a picture")().canvas.get_supported_filetypes()
    if kind.lower() not in known:
        expected = ", ".join(f".{name}" for name in sorted(known))
        raise ValueError(f"expected a picture's file to end in one of {expected}, got {str(path)!r}")
    check_writable(target)


def figure_class(what: str) -> Any:
    """matplotlib's Figure, which needs no display and leaves pyplot's state alone.  what: needs it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"{what} needs matplotlib: pip install 'pydtconv[plot]'") from error
    return Figure


def _target(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """A picture's absolute path, and its format."""
    target = Path(path).expanduser().absolute()
    return target, target.suffix.removeprefix(".") or "png"
