"""Checks of data against a model before anything runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.layers.base.input_spec import shape_hint
from pydtconv.support.strings import are_fingerprints, reads_strings
from pydtconv.trainers.targets import Targets


def check_inputs(model: Any, x: Any) -> None:
    """Raises ValueError, naming the input, where x does not have the number and shapes of the model's inputs."""
    try:
        expected = list(model.inputs or ())
    except AttributeError:
        return
    if not expected:
        return
    arrays = model._pydt_flat(x)
    if len(arrays) != len(expected):
        raise ValueError(
            f"x: expected {len(expected)} input(s), {[tensor.name for tensor in expected]}, got {len(arrays)}"
        )
    for tensor, array in zip(expected, arrays, strict=True):
        if array is None:  # of an optional input
            continue
        read, given = ("strings" if them else "numbers" for them in (reads_strings(tensor), are_fingerprints(array)))
        if read != given:
            raise ValueError(f"x: input {tensor.name!r}: expected {read}, got {given}")
        wanted, got = tuple(tensor.shape), tuple(array.shape)
        if not _fits(model, wanted, got):
            told = f"({', '.join(['n', *(str(e) for e in wanted[1:])])})"
            raise ValueError(f"x: input {tensor.name!r}: expected shape {told}, got {got}{shape_hint(wanted, got)}")


def _fits(model: Any, wanted: tuple[int | None, ...], got: tuple[int, ...]) -> bool:
    if len(wanted) == len(got) + 1 and wanted[-1] == 1:
        wanted = wanted[:-1]
    elif len(got) == len(wanted) + 1 and got[-1] == 1:
        got = got[:-1]
    return model._pydt_takes(wanted, got)


def check_targets(targets: Targets, y: Any, predictions: Any, class_names: Collection[str] = ()) -> None:
    """Raises ValueError, naming the output, where a loss finds targets that it cannot read.

    predictions: the model's outputs for some batch (with .shape).  class_names: those of a data set that has them.
    """
    shapes = tree.flatten(predictions)
    if len(shapes) == len(targets.outputs) == 1 and getattr(targets.outputs[0].loss, "takes_labels", False):
        classes = shapes[0].shape[-1]
        if classes < len(class_names):
            raise ValueError(
                f"y: output {targets.outputs[0].name!r} has {classes} classes, the data has {len(class_names)}: "
                f"{', '.join(class_names)}"
            )
    for output, array, prediction in zip(
        targets.outputs, targets.arrange(y, "y"), tree.flatten(predictions), strict=True
    ):
        if output.loss is None or array is None:
            continue
        try:
            output.loss.check_targets(np.asarray(array), tuple(prediction.shape))
        except ValueError as error:
            raise ValueError(f"y: output {output.name!r}: {error}") from error
