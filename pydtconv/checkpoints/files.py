"""The file of a checkpoint: a zip without compression, of `state.json` and one `.npy` for each array.

`numpy.load` opens it too.  `state.json` holds the state, a tree of plain data in which arrays stand by their names, and
says format, version and all arrays.  Each part has the CRC-32 that zip gives it, so that a file of which a byte is
wrong or missing is refused.  Nothing in it is ever run: there are no pickles.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from pydtconv.files.archives import Archive
from pydtconv.files.reading import BadFileError, parsing
from pydtconv.files.whole_file import write_alone

FORMAT, VERSION = "pydtconv checkpoint", 1
_STATE = "state.json"
_MARKS = ("array", "scalar", "tuple", "pairs")
_BLOCK = 1 << 24


#: bytes of `state.json`, which holds no arrays
_STATE_LIMIT = 1 << 28


class CheckpointError(BadFileError):
    """A file that is no whole checkpoint of this format; the text says why."""


def write_checkpoint(path: str | Path, state: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> None:
    """Writes a state whole or not at all.

    state: nested dicts, lists and tuples of None, booleans, numbers, strings and arrays.  about: more for `state.json`.
    Raises TypeError for other data, and OSError that names file and size where the disk is full.
    """
    arrays: dict[str, np.ndarray] = {}
    tree = _encoded(state, "", arrays)
    listed = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    head = {"format": FORMAT, "version": VERSION, **(about or {}), "arrays": listed, "state": tree}
    text = json.dumps(head).encode()

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            archive.writestr(zipfile.ZipInfo(_STATE), text)  # of 1980: a clock may be before that
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=array.nbytes > 1 << 31) as member:
                    _write_array(member, array)

    write_alone(Path(path), write, len(text) + sum(array.nbytes + 256 for array in arrays.values()))


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """The state that `write_checkpoint` wrote.  Raises CheckpointError that says why a file is none, or is damaged."""
    if not Path(path).exists():
        raise CheckpointError(f"there is no file {path}")
    try:
        with parsing(path, "a checkpoint"), Archive(path, "a checkpoint") as archive:
            return _read(archive)
    except CheckpointError:
        raise
    except OSError as error:  # what damage leads to: of the zip, of the JSON, of an array's header
        reason = str(error).removeprefix(f"{path}: ")
        raise CheckpointError(f"{path} is torn, damaged or no checkpoint: {reason}") from error


def _read(archive: Archive) -> dict[str, Any]:
    names = set(archive.names)
    if _STATE not in names:
        raise CheckpointError(f"expected a checkpoint, got a zip without {_STATE}")
    head = json.loads(archive.read(_STATE, _STATE_LIMIT))
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise CheckpointError(f"expected the format {FORMAT!r}, got another one")
    if head.get("version") != VERSION:
        raise CheckpointError(f"expected version {VERSION} of the format, got {head.get('version')!r}")
    if names != {_STATE, *(f"{name}.npy" for name in head["arrays"])}:
        raise CheckpointError("expected the arrays that it lists, got others")
    arrays = {}
    for name, (dtype, shape) in head["arrays"].items():
        array = archive.array(name)
        if array.dtype.str != dtype or array.shape != tuple(shape):
            raise CheckpointError(f"expected {name} of {dtype} {tuple(shape)}, got {array.dtype} {array.shape}")
        arrays[name] = array
    state = _decoded(head["state"], arrays)
    if not isinstance(state, dict):
        raise CheckpointError(f"expected its state to be a mapping, got {type(state).__name__}")
    return state


def _write_array(member: IO[bytes], array: np.ndarray) -> None:
    """The array in the form of `.npy`, without a copy of it."""
    np.lib.format.write_array_header_2_0(member, np.lib.format.header_data_from_array_1_0(array))
    raw = array.reshape(-1).view(np.uint8).data
    for start in range(0, len(raw), _BLOCK):
        member.write(raw[start : start + _BLOCK])


def _encoded(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The tree as JSON has it; arrays go into `arrays` by the names of their places."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value, order="C")
        if array.dtype.hasobject:
            raise TypeError(f"checkpoint: {name}: expected an array of numbers, got dtype {array.dtype}")
        arrays[name] = array
        return {"scalar" if isinstance(value, np.generic) else "array": name}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value) and not (len(value) == 1 and next(iter(value)) in _MARKS):
            return {key: _encoded(item, f"{name}/{key}" if name else key, arrays) for key, item in value.items()}
        pairs = enumerate(value.items())
        return {"pairs": [[_encoded(part, f"{name}/{i}{side}", arrays) for side, part in _sides(x)] for i, x in pairs]}
    if isinstance(value, (list, tuple)):
        items = [_encoded(item, f"{name}/{i}", arrays) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    raise TypeError(f"checkpoint: {name}: expected plain data or an array, got {type(value).__name__}")


def _sides(pair: tuple[Any, Any]) -> Iterator[tuple[str, Any]]:
    yield "key", pair[0]
    yield "value", pair[1]


def _decoded(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    mark = next(iter(value)) if len(value) == 1 else None
    if mark == "array":
        return arrays[value[mark]]
    if mark == "scalar":
        return arrays[value[mark]][()]
    if mark == "tuple":
        return tuple(_decoded(item, arrays) for item in value[mark])
    if mark == "pairs":
        return {_decoded(key, arrays): _decoded(item, arrays) for key, item in value[mark]}
    return {key: _decoded(item, arrays) for key, item in value.items()}
