"""Files that are whole or not there: full disks, exceptions, killed processes."""

import errno
import os
import pty
import pwd
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import pydtconv as keras
from pydtconv.files import hdf5, whole_file
from pydtconv.files.download import cache_folder
from pydtconv.files.growing_file import GrowingFile
from pydtconv.files.whole_file import check_writable, temporary_prefix, write_elsewhere, write_whole
from pydtconv.support import uninterrupted
from pydtconv.support.machine import own_cache
from tests.disks import file_size_limit, run_on_small_disk


def test_content_and_mode(tmp_path):
    path = tmp_path / "new" / "file"
    write_whole(path, lambda file: file.write(b"first"))
    write_whole(path, lambda file: file.write(b"second"))
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_the_umask_counts_and_does_not_change_for_other_threads(tmp_path, monkeypatch):
    """Who reads it has to set it, and a file that another thread makes meanwhile would be open to all."""
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")
            write_whole(tmp_path / "file", lambda file: file.write(b"text"))
        assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_a_full_disk_names_file_and_sizes_and_keeps_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with file_size_limit(1 << 20), pytest.raises(OSError, match=r"3\.0 MiB to be written, stopped after 1\.0 MiB") as e:
        write_whole(path, lambda file: [file.write(bytes(1 << 18)) for _ in range(12)], 3 << 20)
    assert e.value.errno == errno.EFBIG
    assert e.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def grow(path):
    file = GrowingFile(path)
    file.add(b"new")
    file.close()


@pytest.fixture
def terminal():
    """A device that nobody misses."""
    ends = pty.openpty()
    yield Path(os.ttyname(ends[1]))
    for end in ends:
        os.close(end)


WRITERS = {
    "whole": lambda path: write_whole(path, lambda file: file.write(b"new")),
    "growing": grow,
    "check": check_writable,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "link"])
@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a device"])
def test_what_is_no_file_is_not_replaced(write, linked, kind, tmp_path, terminal):
    path = {"a folder": tmp_path / "folder", "a pipe": tmp_path / "pipe", "a device": terminal}[kind]
    if kind != "a device":
        (os.mkdir if kind == "a folder" else os.mkfifo)(path)
    before = path.lstat()
    if linked:
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    with pytest.raises(OSError, match=f"expected the name of a file, got {kind}") as error:
        write(path)
    assert error.value.filename == str(path)
    assert path.is_symlink() == linked
    assert path.stat().st_ino == before.st_ino


def test_links(tmp_path):
    """Whole files take the place of a link, logs that grow are written through it."""
    (tmp_path / "other").write_bytes(b"other")
    for name, expected in (("whole", b"other"), ("growing", b"new")):
        link = tmp_path / name
        link.symlink_to(tmp_path / "other")
        WRITERS[name](link)
        assert link.read_bytes() == b"new"
        assert link.is_symlink() == (name == "growing")
        assert (tmp_path / "other").read_bytes() == expected


def test_an_exception_keeps_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files")
def test_a_folder_that_takes_no_files_is_told_by_the_name_of_the_file():
    path = Path("/proc/file")
    for write in (lambda: write_whole(path, lambda file: None)), (lambda: check_writable(path)):
        with pytest.raises(OSError, match="/proc/file") as caught:
            write()
        assert caught.value.filename == "/proc/file"


def test_a_killed_process_keeps_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom pydtconv.files.whole_file import write_whole\n"
        "def write(file):\n    file.write(b'half')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path(sys.argv[1]), write)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(path)], timeout=120)
    assert run.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"before"
    (left,) = (entry.name for entry in tmp_path.iterdir() if entry != path)
    assert left.startswith(temporary_prefix(path))


@pytest.mark.slow
def test_weights_on_a_full_disk(tmp_path):
    script = """
import sys
from pathlib import Path
import pydtconv
from pydtconv import layers
model = pydtconv.Sequential([layers.Input((64,)), layers.Dense(64)])
large = pydtconv.Sequential([layers.Input((512,)), layers.Dense(512)])
folder = Path(sys.argv[1])
model.save_weights(folder / "a.weights.h5")
model.save(folder / "a.keras")
before = {path.name: path.read_bytes() for path in folder.iterdir()}
for write, name in (large.save_weights, "a.weights.h5"), (large.save, "a.keras"):
    try:
        write(folder / name)
    except OSError as error:
        print(error)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
"""
    run = run_on_small_disk(script, tmp_path, 200, str(tmp_path))
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert "No space left on device: 1.0 MiB to be written" in first
    assert first.endswith("a.weights.h5'")
    assert second.endswith("a.keras'")


def test_a_user_whom_the_system_does_not_know(tmp_path, monkeypatch):
    """As in some containers.  Where there is no current folder either, files go to that of temporary ones."""

    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "PYDTCONV_CACHE", "KERAS_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert str(own_cache()) == "/.cache/pydtconv"
    assert str(cache_folder()) == "/.keras"
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    (tmp_path / "file").touch()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = write_elsewhere(tmp_path / "a.npz", ".npz", lambda file: file.write(b"kept"))
    assert (path.parent, path.read_bytes()) == (tmp_path, b"kept")


def interrupting(at, files):
    """A trace function that sends Ctrl-C at a line, counted over all that run in these files."""
    count = [0]

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in files:
            return None
        count[0] += event == "line"
        if count[0] == at and event == "line":
            signal.raise_signal(signal.SIGINT)
        return trace

    return trace


def interruptions(save):
    """Runs it until no line is left to send Ctrl-C at; yields its number each time it came out as KeyboardInterrupt.

    A generator has exceptions of its own: what an interrupted exit of a `with` leaves behind ends with it.
    """
    files = {module.__file__ for module in (whole_file, hdf5, uninterrupted)}
    before = sys.gettrace()
    for at in range(1, 2000):
        sys.settrace(interrupting(at, files))
        try:
            save()
            return
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        yield at


@pytest.mark.parametrize("name", ["a.keras", "a.weights.h5", "a.h5"])
def test_ctrl_c_while_a_model_is_saved(name, tmp_path):
    """At each line it comes out as KeyboardInterrupt, and leaves the file before or the new one, and nothing else."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    path = tmp_path / name
    save = model.save_weights if name == "a.weights.h5" else model.save
    save(path)
    interrupts = 0
    for _ in interruptions(lambda: save(path)):
        interrupts += 1
        assert [entry.name for entry in tmp_path.iterdir()] == [name]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert interrupts > 30
    assert sys.exc_info() == (None, None, None)
    model.load_weights(path)
