"""The fuzzer: what it takes for a failure, and a short run of it."""

import subprocess
import sys

import pytest

from pydtconv.utils.reading import BadFileError
from tests.fuzz import room_files, trials
from tests.fuzz.readers import READERS, Reader


@pytest.fixture
def trial(tmp_path, monkeypatch):
    """Tries a reader on a file of four bytes."""
    (tmp_path / "any").mkdir()
    monkeypatch.setattr(room_files, "_folder", tmp_path, raising=False)
    monkeypatch.setattr(trials, "counts", type(trials.counts)())
    sys.addaudithook(room_files._audit)

    def run(read):
        room_files._trial(Reader("any", "a", lambda folder: [], read), b"data")

    return run


def test_files_that_are_taken_or_refused_by_name_are_counted(trial):
    def refuse(path):
        raise BadFileError(f"{path}: bad")

    trial(lambda path: None)
    trial(refuse)
    assert trials.counts == {("any", "taken"): 1, ("any", "refused"): 1}


def test_what_is_a_failure(trial):
    def unnamed(path):
        raise BadFileError("bad")

    def writes(path):
        path.with_name("other").write_text("text")

    with pytest.raises(AssertionError, match="does not name the file"):
        trial(unnamed)
    with pytest.raises(KeyError):
        trial(lambda path: {}["a"])
    with pytest.raises(AssertionError, match=r"led to .*subprocess\.Popen"):
        trial(lambda path: subprocess.run(["true"]))
    with pytest.raises(AssertionError, match=r"led to .*open"):
        trial(writes)


@pytest.mark.slow
def test_a_run_of_each_reader(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "files", "--seed", "7", "--runs", str(len(READERS))]
    run = subprocess.run([*command, "--corpus", str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    for reader in READERS:
        assert f"| files | {reader.kind} | refused |" in run.stdout
