"""Whole models: a `.keras` file is a zip of config.json, metadata.json and model.weights.h5, as Keras 3 writes it."""

from __future__ import annotations

import datetime
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pydtconv import replica
from pydtconv._version import __version__
from pydtconv.models.weight_files import WEIGHTS_IN_ARCHIVE, _check_built, read_weights, write_weights
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object
from pydtconv.utils.whole_file import write_whole

#: the version of the format, which other readers look at
_FORMAT_VERSION = "3.0.0"


def save_model(model: Any, filepath: str | Path, overwrite: bool = True, zipped: bool | None = None) -> None:
    """Writes a model's config, weights and compile arguments to a `.keras` file, whole or not at all."""
    path = Path(filepath)
    if path.suffix != ".keras" or zipped is False:
        raise ValueError(f"save: filepath: expected a name that ends in '.keras', got {str(filepath)!r}")
    if path.exists() and not overwrite:
        raise FileExistsError(f"save: {path} exists, and overwrite=False")
    _check_built(model, "save")
    config = serialize_keras_object(model)
    compile_config = model.get_compile_config() if hasattr(model, "get_compile_config") else None
    if compile_config:
        config["compile_config"] = compile_config
    metadata = {
        "keras_version": _FORMAT_VERSION,
        "pydtconv_version": __version__,
        "date_saved": datetime.datetime.now().strftime("%Y-%m-%d@%H:%M:%S"),
    }
    weights = io.BytesIO()
    write_weights(model, weights)

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("metadata.json", json.dumps(metadata))
            archive.writestr("config.json", json.dumps(config))
            archive.writestr(WEIGHTS_IN_ARCHIVE, weights.getvalue())

    write_whole(path, write, weights.getbuffer().nbytes)


def load_model(
    filepath: str | Path,
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Any:
    """The model of a `.keras` file.

    custom_objects: classes and functions by name that are not registered.  compile: whether to compile it as it was.
    safe_mode is Keras's: code is never loaded from a file here.
    """
    path = Path(filepath)
    replica.current().wait_for(path)
    if not path.exists():
        raise FileNotFoundError(f"load_model: there is no file {path}")
    if path.suffix != ".keras" or not zipfile.is_zipfile(path):
        raise ValueError(f"load_model: filepath: expected a '.keras' file, got {str(filepath)!r}")
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json"))
        weights = archive.read(WEIGHTS_IN_ARCHIVE)
    compile_config = config.pop("compile_config", None)
    model = deserialize_keras_object(config, custom_objects)
    if compile and compile_config and hasattr(model, "compile_from_config"):
        model.compile_from_config(compile_config)
    read_weights(model, io.BytesIO(weights), str(path))
    return model
