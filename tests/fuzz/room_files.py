"""Damaged, cut and swapped files for every reader.

A trial passes where the reader takes the file or raises the error of its kind that names the file; nothing may be run
(audit events), nothing may be written beside the file, and the worker's limits hold memory and time.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from pydtconv.files import hdf5_trial
from tests.fuzz import trials
from tests.fuzz.mutations import damaged
from tests.fuzz.readers import READERS, Reader

#: what a file must never lead to
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "ctypes.dlopen", "socket.connect")
_found: list[str] = []
_watched = False
_folder: Path
_readers: list[tuple[Reader, list[bytes]]] = []


def prepare() -> None:
    """Makes the whole files and reads each once, so that all that is imported later has been imported."""
    global _folder
    _folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    for reader in READERS:
        place = _folder / reader.kind
        place.mkdir()
        wholes = reader.make(place)
        _readers.append((reader, wholes))
        for data in wholes:
            path = place / reader.name
            path.write_bytes(data)
            _outcome(reader.read, path, reader.errors)
    sys.addaudithook(_audit)


def run(seed: int) -> None:
    if not _readers:
        prepare()
    reader, wholes = _readers[seed % len(_readers)]
    others = [data for other, some in _readers if other.kind != reader.kind for data in some]

    @seeded(seed)
    @settings(
        max_examples=trials.files,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(damaged([*wholes, *wholes, *others[:2]] if seed % 3 == 0 else wholes))
    def test(data: bytes) -> None:
        _trial(reader, data)

    test()


def _trial(reader: Reader, data: bytes) -> None:
    path = _folder / reader.kind / reader.name
    path.write_bytes(data)
    trials.keep(f"{reader.kind}-{reader.name}", data)
    before = _listing()
    outcome = _outcome(reader.read, path, reader.errors)
    if _found:
        raise AssertionError(f"{reader.kind}: the file led to {_found}")
    if _listing() != before:
        raise AssertionError(f"{reader.kind}: files were written: {_listing() ^ before}")
    trials.count(reader.kind, outcome)


def _outcome(read: Callable[[Path], Any], path: Path, errors: tuple[type[Exception], ...]) -> str:
    global _watched
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _found.clear()
        _watched = True
        try:
            read(path)
        except errors as error:
            if str(path) not in str(error):
                raise AssertionError(f"the error does not name the file: {error!r}") from error
            return "refused"
        finally:
            _watched = False
    return "taken"


def _listing() -> set[str]:
    return {str(path) for path in _folder.rglob("*")}


def _is_trial(event: str) -> bool:
    """Whether a copy of this process, or a program, reads an HDF5 file on trial: by no name that comes from a file."""
    a_program = dict.fromkeys(("open", "subprocess.Popen", "os.posix_spawn"), hdf5_trial._in_another)  # of Python 3.13
    trial = ({"os.fork": hdf5_trial._forked} | a_program).get(event)
    frame: FrameType | None = sys._getframe()
    while trial and frame is not None:
        if frame.f_code is trial.__code__:
            return True
        frame = frame.f_back
    return False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched:
        return
    written = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    of_a_pipe = event != "open" or isinstance(arguments[0], int)
    if (written or event.startswith(FORBIDDEN)) and not (of_a_pipe and _is_trial(event)):
        _found.append(f"{event} {arguments!r:.200}")
