"""Files of layers: what `save_assets(folder)` writes, for `load_assets(folder)` to read.

In a `.keras` archive they lie in `assets/<path of the layer>/`, as Keras has them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from pydtconv.files.reading import BadFileError
from pydtconv.layers.base.object_paths import walk

_FOLDER = "assets"


def written_assets(model: Any) -> dict[str, bytes]:
    """The files of all layers by their names in the archive."""
    found: dict[str, bytes] = {}
    for path, layer in walk(model):
        if hasattr(layer, "save_assets"):
            with tempfile.TemporaryDirectory() as folder:
                layer.save_assets(folder)
                files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
                found.update({str(_place(path) / file.relative_to(folder)): file.read_bytes() for file in files})
    return found


def read_assets(model: Any, source: Any, names: Iterable[str], read: Callable[[str], bytes]) -> None:
    """Lets the layers read their files.  Raises BadFileError for names that lead elsewhere.

    source: what the files come from, for errors.  names: of all files.  read: gives the content of one.
    """
    files = [name for name in names if not name.endswith("/")]
    for path, layer in walk(model):
        if hasattr(layer, "load_assets"):
            place = _place(path)
            with tempfile.TemporaryDirectory() as folder:
                for name in files:
                    if PurePosixPath(name).is_relative_to(place):
                        target = _target(name, place, Path(folder), source)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(read(name))
                layer.load_assets(folder)


def _place(path: str) -> PurePosixPath:
    return PurePosixPath(_FOLDER, *filter(None, path.split("/")))


def _target(name: str, place: PurePosixPath, folder: Path, source: Any) -> Path:
    parts = PurePosixPath(name).relative_to(place).parts
    if ".." in parts or any("\\" in part or ":" in part for part in parts):
        raise BadFileError(f"{source}: expected names of files inside {place}, got {name!r}")
    return folder.joinpath(*parts)
