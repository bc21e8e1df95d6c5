"""Files of weights and models under any name, as Keras 2 wrote and read them: HDF5 in its layout."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydtconv import saving
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.files.hdf5 import opened
from pydtconv.files.reading import BadFileError
from pydtconv.models import legacy_files, model_files
from pydtconv.models.model import Model

_MAGIC = b"\x89HDF\r\n\x1a\n"
#: endings of files of weights that are not Keras 2's
_NOT_OLD = (".weights.h5", ".weights.json")
_FORMATS = (None, "h5", "keras")
#: models that this process has saved under a name without an ending, by their files: TensorFlow's folders made those
#: again that their configs cannot make
_saved: weakref.WeakValueDictionary[Path, Any] = weakref.WeakValueDictionary()


def is_hdf5(path: Path) -> bool:
    """Whether a file begins as HDF5 does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _checked(where: str, filepath: Any, save_format: Any) -> Path:
    path = Path(filepath)
    if save_format not in _FORMATS or path.is_dir() or str(filepath).endswith("/"):
        raise ValueError(
            f"{where}: expected the name of a file, got {str(filepath)!r} (save_format={save_format!r}): TensorFlow's "
            "folders are not here; write a name that ends in .keras or .h5, or model.export(..., format='onnx')"
        )
    return path


def _save_weights(
    original: Any, self: Any, filepath: Any, overwrite: bool = True, save_format: Any = None, **kwargs: Any
) -> Any:
    if kwargs or str(filepath).endswith(_NOT_OLD):
        return original(self, filepath, overwrite, **kwargs)
    path = _checked("save_weights", filepath, save_format)
    if path.exists() and not overwrite:
        raise FileExistsError(f"save_weights: {path} exists, and overwrite=False")
    noticed.once("save_weights", f"save_weights: {path} is written in the layout of Keras 2: write a .weights.h5 name")
    model_files.check_built(self, "save_weights")
    legacy_files.save_legacy_weights(self, path)


def _load_weights(original: Any, self: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
    if args and isinstance(args[0], bool) and not kwargs and args[0]:  # Keras 2: by_name by place
        args, kwargs = (), {"by_name": True}
    kwargs.pop("reshape", None)
    path = Path(filepath)
    if path.suffix in (".h5", ".hdf5", ".keras") or not is_hdf5(path):
        return original(self, filepath, *args, **kwargs)
    with opened(path, "a file of weights") as h5:
        legacy_files.read_legacy_weights(self, h5, str(path), by_name=bool(kwargs.get("by_name")))


def _save(original: Callable[..., Any]) -> Callable[..., Any]:
    def save(model: Any, filepath: Any, overwrite: bool = True, include_optimizer: bool = True, **kwargs: Any) -> None:
        old = not hasattr(filepath, "write") and Path(filepath).suffix not in (".keras", ".h5", ".hdf5")
        if not old or not kwargs.keys() <= {"save_format"}:
            return original(model, filepath, overwrite, include_optimizer=include_optimizer, **kwargs)
        path = _checked("save", filepath, kwargs.get("save_format"))
        if path.exists() and not overwrite:
            raise FileExistsError(f"save: {path} exists, and overwrite=False")
        noticed.once("save", f"save: {path} is written as Keras 2's HDF5: write a name that ends in .keras")
        model_files.check_built(model, "save")
        legacy_files.save_legacy_model(model, path, include_optimizer)
        _saved[path.resolve()] = model

    return save


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    def load_model(filepath: Any, custom_objects: Any = None, compile: bool = True, **kwargs: Any) -> Any:
        old = not hasattr(filepath, "read") and Path(filepath).suffix not in (".keras", ".h5", ".hdf5")
        if not old or not is_hdf5(Path(filepath)):
            return original(filepath, custom_objects, compile, **kwargs)
        path = Path(filepath)
        try:
            return legacy_files.load_legacy_model(path, custom_objects, compile)
        except BadFileError as error:
            saved = _saved.get(path.resolve())
            if saved is None:
                raise
            told = f"load_model: {path}: a copy of the model that was saved, with the file's weights: {error}"
            warnings.warn(told, UserWarning, stacklevel=2)
        model = copy.deepcopy(saved)
        with opened(path, "a file of weights") as h5:
            legacy_files.read_legacy_weights(model, h5, str(path))
        return model

    return load_model


def table() -> dict[str, Any]:
    """`save_model` and `load_model` of `keras.models`."""
    return {"save_model": _save(saving.save_model), "load_model": _load(saving.load_model)}


def install() -> None:
    """Lets models write and read files as Keras 2 did."""
    patches.around(Model, "save_weights", _save_weights)
    patches.around(Model, "load_weights", _load_weights)
    save = _save(model_files.save_model)
    patches.put(Model, "save", lambda self, filepath, *args, **kwargs: save(self, filepath, *args, **kwargs))
