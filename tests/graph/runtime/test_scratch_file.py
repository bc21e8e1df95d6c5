"""The scratch file: what comes back is what was written, nothing is left, and what goes wrong is told."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from pydtconv.graph.runtime import scratch_file
from pydtconv.graph.runtime.scratch_file import MIB, ScratchFile
from pydtconv.kernels.base import scratch
from tests.disks import file_size_limit, run_on_small_disk


def pages(count: int) -> np.ndarray:
    array = scratch(count * 4096, 4096)
    array[:] = np.random.default_rng(count).integers(0, 256, array.size, np.uint8)
    return array


def run(calls) -> None:
    start, wait = calls
    start()
    wait()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("pydtconv ")]


@pytest.mark.parametrize("direct", [True, False])
def test_what_is_read_is_what_was_written(tmp_path, monkeypatch, direct) -> None:
    monkeypatch.setattr(scratch_file, "CHUNK", 3 * 4096)
    if not direct:
        monkeypatch.setattr(scratch_file, "_go_direct", lambda descriptor: False)
    file = ScratchFile(str(tmp_path))
    file.reserve(MIB)
    assert not os.listdir(tmp_path)
    flags = fcntl.fcntl(file._opened.descriptor, fcntl.F_GETFL)
    assert file.direct == bool(flags & getattr(os, "O_DIRECT", 0)) or sys.platform == "darwin"
    assert direct or not file.direct
    arrays = [pages(7), pages(11)]
    writes = [file.bind(array, place, True, "write") for array, place in zip(arrays, (0, 7 * 4096), strict=True)]
    for start, _ in writes:
        start()
    for _, wait in writes:
        wait()
    back = [scratch(array.nbytes, 4096) for array in arrays]
    for array, place in zip(back, (0, 7 * 4096), strict=True):
        run(file.bind(array, place, False, "read"))
    for a, b in zip(arrays, back, strict=True):
        np.testing.assert_array_equal(a, b)
    file.close()
    assert not threads()


def test_two_files_in_one_folder_do_not_meet(tmp_path) -> None:
    files, arrays = [ScratchFile(str(tmp_path)) for _ in range(2)], [pages(3), pages(4)]
    for file, array in zip(files, arrays, strict=True):
        file.reserve(MIB)
        run(file.bind(array, 0, True, "write"))
    for file, array in zip(files, arrays, strict=True):
        back = scratch(array.nbytes, 4096)
        run(file.bind(back, 0, False, "read"))
        np.testing.assert_array_equal(array, back)
        file.close()


def test_a_file_that_is_forgotten_ends_its_threads(tmp_path) -> None:
    file = ScratchFile(str(tmp_path))
    file.reserve(4096)
    assert len(threads()) == 2
    del file
    assert not threads()


def test_a_folder_that_is_none_and_a_disk_that_is_full_are_told_of_before_anything_is_written(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="offload: expected a folder that can be written to, got"):
        ScratchFile(str(tmp_path / "none")).reserve(4096)
    if os.path.isdir("/proc/self/fd"):  # nobody can make a file there
        with pytest.raises(OSError, match="offload: expected a folder that can be written to, got '/proc/self/fd'"):
            ScratchFile("/proc/self/fd").reserve(4096)
    file = ScratchFile(str(tmp_path))
    with file_size_limit(MIB), pytest.raises(OSError, match=r"offload: expected 2 MiB in .* MiB are free") as error:
        file.reserve(2 * MIB)
    assert error.value.errno == errno.EFBIG
    file.reserve(MIB)
    file.close()


def test_an_error_while_reading_is_raised_where_it_is_waited_for(tmp_path) -> None:
    file = ScratchFile(str(tmp_path))
    file.reserve(4096)
    start, wait = file.bind(scratch(2 * 4096, 4096), 0, False, "read x")
    start()
    message = r"offload: could not read x in .*; the step was interrupted: expected 8192 bytes"
    with pytest.raises(OSError, match=message):
        wait()
    wait()  # nothing is under way
    file.close()


NEIGHBOUR = """
import os, sys
import numpy as np
from pydtconv.graph.runtime.scratch_file import ScratchFile
from pydtconv.kernels.base import scratch
file = ScratchFile(sys.argv[1])
file.reserve(64 * 4096)
array, back = scratch(64 * 4096, 4096), scratch(64 * 4096, 4096)
array[:] = int(sys.argv[2])
write, read = file.bind(array, 0, True, "write"), file.bind(back, 0, False, "read")
for turn in range(20):
    for start, wait in (write, read):
        start()
        wait()
    assert (back == int(sys.argv[2])).all()
    back[:] = 0
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_processes_in_one_folder_do_not_meet_and_a_kill_leaves_nothing(tmp_path) -> None:
    command = [sys.executable, "-c", NEIGHBOUR, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(number)], **pipes) for number in (1, 2)]
    try:
        for process in processes:
            assert process.stdout.readline() == "done\n"
        assert not os.listdir(tmp_path)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert not os.listdir(tmp_path)


SMALL_DISK = """
import sys, warnings
from pydtconv.graph.runtime.scratch_file import MIB, ScratchFile
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    file = ScratchFile(sys.argv[1])
    try:
        file.reserve(8 * MIB)
    except OSError as error:
        print(error)
    file.reserve(MIB)
print(found[0].message)
"""


@pytest.mark.slow
def test_a_full_disk_and_one_that_is_memory(tmp_path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    done = run_on_small_disk(SMALL_DISK, folder, 2048, str(folder))
    assert done.returncode == 0, done.stderr
    assert "offload: expected 8 MiB in" in done.stdout
    assert "No space left" in done.stdout
    assert "is a tmpfs, whose files are memory: offloading to it saves none" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_file_and_threads_of_its_own(tmp_path) -> None:
    file = ScratchFile(str(tmp_path))
    file.reserve(MIB)
    array, other, back = pages(3), pages(3), scratch(3 * 4096, 4096)
    run(file.bind(array, 0, True, "write"))
    child = os.fork()
    if not child:
        signal.alarm(20)  # there may be nobody who transfers
        file.reserve(MIB)
        other[:] = 7
        run(file.bind(other, 0, True, "write"))
        run(file.bind(back, 0, False, "read"))
        os._exit(0 if (back == 7).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    run(file.bind(back, 0, False, "read"))
    np.testing.assert_array_equal(array, back)
    file.close()
    assert not threads()
