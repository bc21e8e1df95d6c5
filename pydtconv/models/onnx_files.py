"""ONNX files as functional models; the reverse is `Model.export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydtconv import replica
from pydtconv.files.reading import parsing
from pydtconv.interchange.onnx.importer import read_onnx
from pydtconv.interchange.onnx.package import import_onnx
from pydtconv.models.model import Model
from pydtconv.support.random import unless_it_fails


@unless_it_fails()
def load_onnx(filepath: str | Path, free_batch: bool = False) -> Any:
    """The model of an ONNX file: convolutions, dense layers and normalizations are layers with the file's weights.

    The model is like others: it predicts, is compiled and trained, saved.  Its inputs have the file's layout: images
    (n, channels, height, width).  free_batch: whether the batch is free where the file says how much it is, as files
    do that PyTorch writes by default.

    Raises ImportError without the package onnx, and BadFileError, which is an OSError and a ValueError, that names the
    file, and the operator and attribute that is not supported.
    """
    path = Path(filepath)
    replica.current().wait_for(path)
    if not path.exists():
        raise FileNotFoundError(f"load_onnx: there is no file {path}")
    import_onnx("load_onnx")  # without the package the file is not to blame
    with parsing(path, "an ONNX model"):
        inputs, outputs, name = read_onnx(path, free_batch)
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in name) or "onnx"
        return Model(_one(inputs), _one(outputs), name=name)


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values
