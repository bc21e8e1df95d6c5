"""HDF5 files on which libhdf5 itself would crash, take all memory, or not come back: errors, in bounded time."""

import errno
import os
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tqdm import tqdm

import pydtconv as keras
from pydtconv.files import hdf5_trial
from pydtconv.files.reading import BadFileError


def saved(path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="a"), keras.layers.Dense(2, name="b")])
    (model.save_weights if path.name.endswith(".weights.h5") else model.save)(path)
    return model


def tree_of_itself(data):
    """Every node of a group's tree becomes an inner one, whose only child is the root."""
    places = [at for at in range(len(data) - 4) if data[at : at + 4] == b"TREE" and data[at + 4] == 0]
    for at in places:
        data[at + 5] = 1
        data[at + 32 : at + 40] = struct.pack("<Q", at)


def text_without_end(data):
    """A text of 4 GB, by the length beside its place in the heap."""
    (heap,) = (at for at in range(len(data) - 4) if data[at : at + 4] == b"GCOL")
    found = [at for at in range(len(data) - 12) if data[at : at + 8] == struct.pack("<Q", heap)]
    for at in found:
        data[at - 4 : at] = struct.pack("<I", 0xFFFFFFF0)
    size = heap + 16 + 8  # of the heap's first object
    data[size : size + 8] = struct.pack("<Q", 0xFFFFFFF0)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["copy", "program"])
@pytest.mark.parametrize("name", ["a.weights.h5", "a.h5"])
def test_a_tree_without_end_is_an_error(tmp_path, monkeypatch, name, elsewhere):
    monkeypatch.setattr(hdf5_trial, "_may_fork", lambda: not elsewhere)
    monkeypatch.setattr(hdf5_trial, "_SECONDS", 2.0)
    model = saved(tmp_path / name)
    data = bytearray((tmp_path / name).read_bytes())
    tree_of_itself(data)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadFileError, match=r"a\..*h5"):  # without the trial, reading has no end
        model.load_weights(tmp_path / name)


PEAK = """
import sys
from pathlib import Path
import pydtconv as keras
from pydtconv.files import hdf5_trial
hdf5_trial._may_fork = lambda: sys.argv[2] == "copy"
try:
    keras.models.load_model(sys.argv[1])
except ValueError as error:
    print(error)
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
print(int(peak.split()[0]) >> 10)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc to measure memory")
@pytest.mark.parametrize("where", ["copy", "program"])
def test_a_text_of_any_length_takes_no_memory_here(tmp_path, where):
    saved(tmp_path / "a.h5")
    data = bytearray((tmp_path / "a.h5").read_bytes())
    text_without_end(data)
    (tmp_path / "a.h5").write_bytes(data)
    # a process of its own: the peak of this one is that of all tests before, which ru_maxrss would hand on to it
    command = [sys.executable, "-c", PEAK, str(tmp_path / "a.h5"), where]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    error, peak = told.rsplit("\n", 2)[:2]
    assert "a.h5: expected an '.h5' file of a whole model; " in error
    assert int(peak) < 1 << 10  # MiB; 4 GiB without the trial


@pytest.mark.slow
def test_what_does_not_come_back_is_ended(tmp_path, monkeypatch):
    def turn(file):
        while True:
            pass

    saved(tmp_path / "a.weights.h5")
    monkeypatch.setattr(hdf5_trial, "look", turn)
    monkeypatch.setattr(hdf5_trial, "_SECONDS", 0.0)
    told = hdf5_trial._forked(tmp_path / "a.weights.h5", 0)
    assert told == "reading it does not come to an end"


@pytest.fixture
def nobody_waits():
    """A program that does not want to know how its children end, as one that runs in the background."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["copy", "program"])
def test_programs_that_do_not_wait_for_children(tmp_path, monkeypatch, nobody_waits, elsewhere):
    monkeypatch.setattr(hdf5_trial, "_may_fork", lambda: not elsewhere)
    path = tmp_path / "a.weights.h5"
    model = saved(path)
    model.load_weights(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(BadFileError, match="truncated"):
        model.load_weights(path)


def test_a_crash_in_a_program_that_does_not_wait_for_children(tmp_path, monkeypatch, nobody_waits):
    monkeypatch.setattr(hdf5_trial, "_may_fork", lambda: True)
    monkeypatch.setattr(hdf5_trial, "look", lambda file: os.kill(os.getpid(), signal.SIGKILL))
    model = saved(tmp_path / "a.weights.h5")
    with pytest.raises(BadFileError, match="reading it ended early"):
        model.load_weights(tmp_path / "a.weights.h5")


def test_a_thread_that_a_progress_bar_left_does_not_matter(monkeypatch):
    monkeypatch.setattr(tqdm, "monitor", None)
    with open(os.devnull, "w") as nowhere, tqdm(total=1, file=nowhere):
        watching = tqdm.monitor
        assert watching.is_alive()
        assert hdf5_trial._may_fork()
        goes_on = threading.Event()
        other = threading.Thread(target=goes_on.wait)
        other.start()
        assert not hdf5_trial._may_fork()
        goes_on.set()
        other.join()
    watching.exit()


def test_a_process_that_cannot_be_copied(tmp_path, monkeypatch):
    def fork():
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(hdf5_trial, "_may_fork", lambda: True)
    model = saved(tmp_path / "a.weights.h5")
    monkeypatch.setattr(os, "fork", fork)
    files = len(os.listdir("/proc/self/fd"))
    model.load_weights(tmp_path / "a.weights.h5")
    assert len(os.listdir("/proc/self/fd")) == files


#: programs that are no interpreter, or that cannot be run
NO_HELPERS = {
    "frozen": lambda patch, path: patch.setattr(sys, "frozen", True, raising=False),
    "none": lambda patch, path: patch.setattr(sys, "executable", None),
    "empty": lambda patch, path: patch.setattr(sys, "executable", ""),
    "embedding": lambda patch, path: patch.setattr(sys, "executable", str(path / "editor")),
    "gone": lambda patch, path: patch.setattr(sys, "executable", str(path / "gone" / "python3")),
    "broken": lambda patch, path: patch.setattr(sys, "executable", str(path / "python3")),
    "no program": lambda patch, path: patch.setattr(hdf5_trial, "__file__", str(path / "gone.py")),
}


@pytest.mark.parametrize("change", NO_HELPERS.values(), ids=NO_HELPERS)
def test_a_helper_that_cannot_be_run_is_no_damaged_file(change, tmp_path, monkeypatch):
    for name in ("editor", "python3"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho started >>{tmp_path}/{name}.log\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    path = tmp_path / "a.weights.h5"
    model = saved(path)
    monkeypatch.setattr(hdf5_trial, "_may_fork", lambda: False)
    change(monkeypatch, tmp_path)
    with pytest.warns(RuntimeWarning, match="read without a trial"):
        model.load_weights(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.warns(RuntimeWarning, match="read without a trial"), pytest.raises(BadFileError, match="truncated"):
        model.load_weights(path)
    assert not (tmp_path / "editor.log").exists()


def test_without_proc_and_without_files_for_pipes(tmp_path, monkeypatch):
    """The copy cannot be limited, or not be told from: another program reads."""

    def no_pipe():
        raise OSError(errno.EMFILE, "Too many open files")

    model = saved(tmp_path / "a.weights.h5")
    monkeypatch.setattr(hdf5_trial, "_may_fork", lambda: True)
    for what, name, change in ((hdf5_trial, "_taken", lambda: 0), (os, "pipe", no_pipe)):
        with monkeypatch.context() as patch, pytest.MonkeyPatch.context() as other:
            other.setattr(hdf5_trial, "_in_another", lambda file, size: "the program")
            patch.setattr(what, name, change)
            with pytest.raises(BadFileError, match="the program"):
                model.load_weights(tmp_path / "a.weights.h5")


@pytest.mark.parametrize("files", [8, 12, 16, 24])
def test_few_files(tmp_path, files):
    saved(tmp_path / "a.weights.h5")
    code = f"""if True:
        import resource, sys, warnings, h5py, pydtconv
        from pydtconv.files import hdf5_trial
        hdf5_trial._may_fork = lambda: False
        resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
        warnings.simplefilter("ignore")
        print(hdf5_trial.problem_of({str(tmp_path / "a.weights.h5")!r}, 10000))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "None\n"


@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "damaged"])
def test_what_the_environment_adds_is_not_run(tmp_path, monkeypatch, damaged):
    (tmp_path / "sitecustomize.py").write_text("print('hello')")
    path = tmp_path / "a.weights.h5"
    saved(path)
    if damaged:
        path.write_bytes(path.read_bytes()[:-200])
    for name, value in (("PYTHONPATH", str(tmp_path)), ("PYTHONINSPECT", "1"), ("PYTHONVERBOSE", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    told = hdf5_trial._in_another(path, path.stat().st_size)
    assert ("truncated" in told) if damaged else told == ""
