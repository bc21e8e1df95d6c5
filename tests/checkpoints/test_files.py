"""The file and the folder of checkpoints: what comes back, and what is refused."""

import errno
import json
import shutil
import zipfile

import numpy as np
import pytest

from pydtconv.checkpoints import CheckpointError, Checkpoints, read_checkpoint, write_checkpoint
from tests.disks import file_size_limit, run_on_small_disk
from tests.traced import memory_below

RNG = np.random.default_rng(3)
STATE = {
    "weights": {"layers/dense/0": RNG.normal(size=(5, 7)).astype("float32"), "b": np.arange(3)},
    "plain": [None, True, 3, 2**130, -0.0, float("inf"), 0.1, "text", (1, ("two", []))],
    "numbers": {1: "a", (2, 3): np.float32(0.1)},
    "array": {"array": "a name that looks like a mark"},
    "empty": np.zeros((0, 4)),
    "single": np.array(2.5),
    "turned": RNG.normal(size=(3, 4)).T,
}


def same(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def test_round_trip(tmp_path):
    write_checkpoint(tmp_path / "a.npz", STATE)
    assert same(read_checkpoint(tmp_path / "a.npz"), STATE)


def test_numpy_and_json_read_it_too(tmp_path):
    write_checkpoint(tmp_path / "a.npz", STATE, {"written": "today"})
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        head = json.loads(archive.read("state.json"))
    assert (head["format"], head["version"], head["written"]) == ("pydtconv checkpoint", 1, "today")
    with np.load(tmp_path / "a.npz") as arrays:
        assert np.array_equal(arrays["weights/layers/dense/0"], STATE["weights"]["layers/dense/0"])


def test_data_that_cannot_be_kept(tmp_path):
    with pytest.raises(TypeError, match="a/1: expected plain data or an array, got object"):
        write_checkpoint(tmp_path / "a.npz", {"a": [1, object()]})
    with pytest.raises(TypeError, match="dtype object"):
        write_checkpoint(tmp_path / "a.npz", {"a": np.array([object()])})
    assert not list(tmp_path.iterdir())


def test_each_torn_or_changed_file_is_refused_or_gives_the_same(tmp_path):
    path = tmp_path / "a.npz"
    write_checkpoint(path, {"a": STATE["plain"], "w": np.arange(40.0), "n": {"x": np.arange(3)}})
    whole, state = path.read_bytes(), read_checkpoint(path)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="torn, damaged or no checkpoint"):
            read_checkpoint(path)
    refused = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            assert same(read_checkpoint(path), state), at
        except CheckpointError:
            refused += 1
    assert refused > 0.8 * len(whole)  # the rest are dates and attributes in the zip's directory


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b""), "torn, damaged or no checkpoint"),
        (lambda path: path.write_text("text"), "torn, damaged or no checkpoint"),
        (lambda path: np.savez(path, a=np.zeros(3)), "a zip without state.json"),
        (lambda path: rewrite(path, format="other"), "expected the format 'pydtconv checkpoint'"),
        (lambda path: rewrite(path, version=2), "expected version 1 of the format, got 2"),
        (lambda path: rewrite(path, arrays={"b": ["<f8", [1]]}), "expected the arrays that it lists"),
        (lambda path: path.mkdir(), "torn, damaged or no checkpoint"),
        (lambda path: None, "there is no file"),
    ],
    ids=["empty", "text", "npz", "format", "version", "arrays", "folder", "missing"],
)
def test_foreign_files_are_refused_with_a_reason(make, reason, tmp_path):
    make(tmp_path / "a.npz")
    with pytest.raises(CheckpointError, match=reason):
        read_checkpoint(tmp_path / "a.npz")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "a.npz"
    rewrite(path, arrays={"b": ["<f8", [1]]})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("b.npy", "w") as member:
        for _ in range(100):
            member.write(bytes(1 << 20))
    with memory_below(1 << 23), pytest.raises(CheckpointError, match=r"a\.npz .*they claim 1048\d+"):
        read_checkpoint(path)


def rewrite(path, **changes):
    write_checkpoint(path, {"a": 1})
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read("state.json"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("state.json", json.dumps(head | changes))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_last_ones_are_kept(tmp_path):
    folder = Checkpoints(tmp_path / "new", keep=2)
    for step in range(5):
        folder.write({"step": step})
    assert names(tmp_path / "new") == ["checkpoint-000004.npz", "checkpoint-000005.npz"]
    path, state = folder.latest(lambda state: None)
    assert (path.name, state) == ("checkpoint-000005.npz", {"step": 4})


def test_the_one_before_a_torn_one_is_used_and_kept(tmp_path):
    folder = Checkpoints(tmp_path, keep=2)
    for step in range(3):
        folder.write({"step": step, "w": np.zeros(100)})
    torn = tmp_path / "checkpoint-000003.npz"
    torn.write_bytes(torn.read_bytes()[:300])
    folder = Checkpoints(tmp_path, keep=2)
    with pytest.warns(UserWarning, match=r"refused, the one before is used: .*-000003\.npz is torn"):
        path, state = folder.latest(lambda state: None)
    assert (path.name, state["step"]) == ("checkpoint-000002.npz", 1)
    folder.write({"step": 7})
    assert {"checkpoint-000002.npz", "checkpoint-000004.npz"} <= set(names(tmp_path))


def test_all_refused_is_an_error_and_none_there_is_none(tmp_path):
    folder = Checkpoints(tmp_path)
    assert folder.latest(print) is None
    assert Checkpoints(tmp_path / "missing").latest(print) is None
    (tmp_path / "checkpoint-000001.npz").write_text("text")
    with pytest.raises(CheckpointError, match=r"no checkpoint can be used: .*000001\.npz is torn"):
        folder.latest(print)


def test_unfinished_files_and_only_those_are_cleared(tmp_path):
    folder = Checkpoints(tmp_path)
    folder.write({})
    (tmp_path / ".checkpoint-000002.npz.part-abc").write_text("half")
    (tmp_path / "notes.txt").write_text("mine")
    folder.prepare()
    assert names(tmp_path) == ["checkpoint-000001.npz", "notes.txt"]
    folder.delete()
    assert names(tmp_path) == ["notes.txt"]


def test_a_full_disk_loses_nothing(tmp_path):
    folder = Checkpoints(tmp_path)
    folder.write({"step": 1})
    with file_size_limit(1 << 16), pytest.raises(OSError, match=r"0\.8 MiB to be written") as error:
        folder.write({"w": np.zeros(100_000)})
    assert error.value.errno == errno.EFBIG
    assert names(tmp_path) == ["checkpoint-000001.npz"]


def small_disk(monkeypatch, folder, room):
    """Makes the folder a disk of so many bytes, for checkpoints."""
    from pydtconv.checkpoints import folder as module

    whole = module.write_checkpoint

    def used():
        return sum(path.stat().st_size for path in folder.iterdir())

    def write(path, state, about):
        whole(path, state, about)
        if used() > room:
            path.unlink()
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(module, "write_checkpoint", write)
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=room - used()))


def test_the_oldest_ones_make_room(tmp_path, monkeypatch):
    small_disk(monkeypatch, tmp_path, 25_000)  # room for two
    folder = Checkpoints(tmp_path, keep=3)
    for step in range(2):
        folder.write({"step": step, "w": np.zeros(1200)})
    for step in range(2, 5):
        with pytest.warns(UserWarning, match=rf"no room for another checkpoint: .*00000{step - 1}\.npz is taken away"):
            folder.write({"step": step, "w": np.zeros(1200)})
        assert names(tmp_path) == [f"checkpoint-{step:06d}.npz", f"checkpoint-{step + 1:06d}.npz"]


def test_the_last_one_never_makes_room(tmp_path, monkeypatch):
    small_disk(monkeypatch, tmp_path, 15_000)  # room for one
    folder = Checkpoints(tmp_path, keep=3)
    folder.write({"w": np.zeros(1200)})
    with pytest.raises(OSError, match="No space left"):
        folder.write({"w": np.zeros(1200)})
    assert names(tmp_path) == ["checkpoint-000001.npz"]


def test_nothing_goes_where_that_would_not_make_enough_room(tmp_path, monkeypatch):
    small_disk(monkeypatch, tmp_path, 35_000)
    folder = Checkpoints(tmp_path, keep=3)
    for step in range(2):
        folder.write({"step": step, "w": np.zeros(1200)})
    with pytest.raises(OSError, match="No space left"):
        folder.write({"w": np.zeros(120_000)})
    assert len(names(tmp_path)) == 2


@pytest.mark.slow
def test_the_newest_fits_on_a_real_small_disk(tmp_path):
    script = """
import sys
import warnings
import numpy as np
from pydtconv.checkpoints import Checkpoints
warnings.simplefilter("ignore")
folder = Checkpoints(sys.argv[1], keep=3)
for step in range(5):
    folder.write({"step": step, "w": np.zeros(100_000)})
print([path.name for path in folder.paths], folder.latest(print)[1]["step"])
"""
    run = run_on_small_disk(script, tmp_path, 2000, str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert "['checkpoint-000005.npz', 'checkpoint-000004.npz'] 4" in run.stdout


@pytest.mark.parametrize("keep", [0, -1, True, 1.5])
def test_keep_is_a_count(keep, tmp_path):
    with pytest.raises(ValueError, match="expected keep to be an integer of 1 or more"):
        Checkpoints(tmp_path, keep=keep)
