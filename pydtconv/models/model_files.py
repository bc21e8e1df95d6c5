"""Whole models: a `.keras` file is a zip of config.json, metadata.json and model.weights.h5, as Keras 3 writes it."""

from __future__ import annotations

import datetime
import io
import json
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, cast

from pydtconv import replica
from pydtconv._version import __version__
from pydtconv.files.archives import Archive
from pydtconv.files.reading import BadFileError, MissingFileError, parsing, unpacked_limit
from pydtconv.files.whole_file import write_whole
from pydtconv.layers.base.asset_files import read_assets, written_assets
from pydtconv.layers.base.layer import Layer
from pydtconv.models.legacy_files import load_legacy_model, save_legacy_model
from pydtconv.models.weight_files import (
    WEIGHTS_IN_ARCHIVE,
    check_built,
    is_without_weights,
    read_weights,
    unbuilt_layers,
    write_weights,
)
from pydtconv.serialization.budget import limited_memory
from pydtconv.serialization.lambdas import safe_mode_scope
from pydtconv.serialization.objects import deserialize_keras_object, reading_shared, serialize_keras_object, with_shared
from pydtconv.serialization.registry import custom_object_scope
from pydtconv.serialization.values import parsed
from pydtconv.support.random import unless_it_fails

#: the version of the format, which other readers look at
_FORMAT_VERSION = "3.0.0"
#: bytes of config.json
_CONFIG_LIMIT = 1 << 26


def save_model(
    model: Any,
    filepath: str | Path | IO[bytes],
    overwrite: bool = True,
    zipped: bool | None = None,
    *,
    include_optimizer: bool = True,
    save_format: str | None = None,
    **kwargs: Any,
) -> None:
    """Writes a model's config, weights and compile arguments to a `.keras` file, whole or not at all.

    A name that ends in ".h5" or ".hdf5" gives the file that Keras 2 wrote and Keras 3 still does.  A stream that is
    open for writing gets a `.keras` file.
    Of a model that is not built yet a `.keras` file has no weights, with a warning.
    include_optimizer: whether an `.h5` file has what compile was given.  save_format: Keras 2's; the name of the file
    says the format.
    """
    if kwargs:
        raise ValueError(f"save: unknown arguments: {', '.join(kwargs)}")
    if save_format is not None:
        warnings.warn(f"save: save_format={save_format!r} is passed over: filepath says the format", stacklevel=3)
    path = None if hasattr(filepath, "write") else Path(filepath)
    if path is not None:
        legacy = path.suffix in (".h5", ".hdf5") and not zipped
        if not legacy and (path.suffix != ".keras" or zipped is False):
            raise ValueError(f"save: filepath: expected a name that ends in '.keras' or '.h5', got {str(filepath)!r}")
        if path.exists() and not overwrite:
            raise FileExistsError(f"save: {path} exists, and overwrite=False")
        if legacy:
            check_built(model, "save")
            save_legacy_model(model, path, include_optimizer)
            return
    if model.built or model.variables:
        check_built(model, "save")
    else:
        told = f"save: {unbuilt_layers(model)}: the file has no weights of it"
        warnings.warn(told, UserWarning, stacklevel=3)
    config = with_shared(lambda: model)
    compile_config = model.get_compile_config() if hasattr(model, "get_compile_config") else None
    if compile_config:
        config["compile_config"] = {name: serialize_keras_object(value) for name, value in compile_config.items()}
    metadata = {
        "keras_version": _FORMAT_VERSION,
        "pydtconv_version": __version__,
        "date_saved": datetime.datetime.now().strftime("%Y-%m-%d@%H:%M:%S"),
    }
    weights = io.BytesIO()
    write_weights(model, weights)
    assets = written_assets(model)

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            parts = {"metadata.json": json.dumps(metadata), "config.json": json.dumps(config)}
            for name, data in {**parts, WEIGHTS_IN_ARCHIVE: weights.getvalue(), **assets}.items():
                archive.writestr(zipfile.ZipInfo(name), data)  # of 1980: a clock may be before that

    if path is None:
        write(cast("IO[bytes]", filepath))
    else:
        write_whole(path, write, weights.getbuffer().nbytes + sum(map(len, assets.values())))


@unless_it_fails()
def load_model(
    filepath: str | Path | IO[bytes],
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Any:
    """The model of a `.keras` file, or of an `.h5` file of Keras 2 and 3; also of a stream that holds a `.keras` file.

    custom_objects: classes and functions by name that are not registered.  compile: whether to compile it as it was.
    safe_mode: whether the code of lambda functions in the file is refused; with False it runs when the model does.

    Raises BadFileError, which is an OSError and a ValueError, naming the file and what is wrong with it, and
    MissingFileError, which is a FileNotFoundError and a ValueError, where there is no file.
    """
    path: Any = filepath
    if not hasattr(filepath, "read"):
        path = Path(filepath)
        replica.current().wait_for(path)
        if not path.exists():
            raise MissingFileError(f"load_model: there is no file {path}")
        if path.suffix in (".h5", ".hdf5"):
            with nullcontext() if safe_mode else safe_mode_scope(False):
                return load_legacy_model(path, custom_objects, compile)
        if path.suffix != ".keras":
            raise ValueError(f"load_model: filepath: expected a '.keras' or '.h5' file, got {str(filepath)!r}")
    with Archive(path, "a '.keras' file") as archive:
        text = archive.read("config.json", _CONFIG_LIMIT)
        weights = archive.read(WEIGHTS_IN_ARCHIVE, archive.size(WEIGHTS_IN_ARCHIVE))
    with parsing(archive.path, "a model that can be made"), limited_memory(unpacked_limit(archive.nbytes)):
        config = parsed(text)
        if not isinstance(config, dict):
            raise BadFileError(f"expected config.json to hold an object, got a {type(config).__name__}")
        compile_config = config.pop("compile_config", None)
        with custom_object_scope(custom_objects or {}), nullcontext() if safe_mode else safe_mode_scope(False):
            with reading_shared():
                model = deserialize_keras_object(config)
            if not isinstance(model, Layer):
                raise BadFileError(f"expected config.json to describe a model, got a {type(model).__name__}")
            if compile and compile_config and hasattr(model, "compile_from_config"):
                model.compile_from_config(compile_config)
        built = not unbuilt_layers(model)
        if not built and not is_without_weights(weights, archive.path):
            check_built(model, "load_model")
    if built:
        read_weights(model, io.BytesIO(weights), archive.path)
    if any(hasattr(layer, "load_assets") for layer in model._pydt_flatten_layers()):
        with Archive(path, "a '.keras' file") as archive:
            read_assets(model, archive.path, archive.names, lambda name: archive.read(name, archive.size(name)))
    return model
