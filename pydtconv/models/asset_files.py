"""Files of layers in a `.keras` archive: what `save_assets(folder)` writes, for `load_assets(folder)` to read.

They lie in `assets/<path of the layer>/`, as Keras has them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from pydtconv.layers.object_paths import walk
from pydtconv.utils.archives import Archive
from pydtconv.utils.reading import BadFileError

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


def read_assets(model: Any, archive: Archive) -> None:
    """Lets the layers read their files.  Raises BadFileError for names that lead elsewhere."""
    for path, layer in walk(model):
        if hasattr(layer, "load_assets"):
            with tempfile.TemporaryDirectory() as folder:
                _unpack(archive, _place(path), Path(folder))
                layer.load_assets(folder)


def _place(path: str) -> PurePosixPath:
    return PurePosixPath(_FOLDER, *filter(None, path.split("/")))


def _unpack(archive: Archive, place: PurePosixPath, folder: Path) -> None:
    for name in archive.names:
        inside = PurePosixPath(name)
        if name.endswith("/") or not inside.is_relative_to(place):
            continue
        parts = inside.relative_to(place).parts
        if ".." in parts or any("\\" in part or ":" in part for part in parts):
            raise BadFileError(f"{archive.path}: expected names of files inside {place}, got {name!r}")
        target = folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(name, archive.size(name)))
