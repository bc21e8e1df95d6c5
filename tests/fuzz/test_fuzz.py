"""The fuzzer: what it takes for a failure, and a short run of it."""

import subprocess
import sys

import numpy as np
import pytest

import pydtconv
from pydtconv import config, layers
from pydtconv.conv.problem import ConvProblem
from pydtconv.files import hdf5_trial
from pydtconv.files.reading import BadFileError
from tests.fuzz import comparison, networks, room_commands, room_convolutions, room_files, room_graphs, trials
from tests.fuzz.__main__ import Totals
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
def test_a_trial_that_a_program_makes_is_no_failure(trial):
    """A busy machine may stop the copy that reads an HDF5 file on trial; a program then does."""
    trial(lambda path: hdf5_trial._in_another(path, 4))
    assert trials.counts == {("any", "taken"): 1}
    with pytest.raises(AssertionError, match=r"led to .*subprocess\.Popen"):
        trial(lambda path: (hdf5_trial._in_another(path, 4), subprocess.run(["true"])))


@pytest.fixture
def counts(monkeypatch):
    monkeypatch.setattr(trials, "counts", type(trials.counts)())
    return trials.counts


def test_a_convolution_that_is_wrong(counts, monkeypatch):
    """A result, what lies beside it, and what lies beside the workspace."""
    p = ConvProblem(2, 5, 6, 3, 4, 3, padding="same")
    threads = config.num_threads()
    try:
        room_convolutions._try_all(p, np.random.default_rng(1))
        assert counts["forward im2col", "right"] == 2

        def tries(wrong):
            run_bound = room_convolutions.run_bound
            with monkeypatch.context() as patch:
                patch.setattr(room_convolutions, "run_bound", lambda bound: (run_bound(bound), wrong(patch)))
                room_convolutions._try_all(p, np.random.default_rng(1))

        kept = {}

        def guarded(*arguments):
            kept["out"], kept["around"], mark = original(*arguments)
            return kept["out"], kept["around"], mark

        original = room_convolutions._guarded
        monkeypatch.setattr(room_convolutions, "_guarded", guarded)
        with pytest.raises(AssertionError, match=r"error \d"):
            tries(lambda patch: kept["out"].__setitem__((0, 0, 0, 0), 99))
        with pytest.raises(AssertionError, match="something else than the output"):
            tries(lambda patch: kept["around"].__setitem__(-1, 0))
    finally:
        config.set_num_threads(threads)


def test_a_graph_that_is_wrong(counts, monkeypatch):
    """A network whose plan computes something else than the nodes of its graph say."""
    floatx, threads = config.floatx(), config.num_threads()
    try:
        config.set_floatx("float64")
        random = np.random.default_rng(3)
        net = networks.images(random)
        want, moved = (comparison.naive(net, True, nudge) for nudge in (0.0, 2e-12))
        room_graphs._try(net, True, want, moved, random, "a network")
        assert counts["float64 arrays", "right"] > 0
        for name in ("loss", next(name for name in want if name.startswith("d "))):
            off = {key: value + (1e-6 if key == name else 0) for key, value in want.items()}
            with pytest.raises(AssertionError, match=f"error .* in {name}"):
                room_graphs._try(net, True, off, off, random, "a network")
    finally:
        config.set_floatx(floatx)
        config.set_num_threads(threads)


def test_a_gradient_that_is_what_rounding_leaves(counts):
    """That of a shift before a normalization is zero, however the inputs change; its rounding is not compared."""
    floatx = config.floatx()
    try:
        comparison.begin("float32", 0)
        random = np.random.default_rng(3)
        inputs = pydtconv.Input((6, 6, 4))
        shifted = layers.LayerNormalization(epsilon=1e-7)(inputs)
        x = layers.GroupNormalization(4, epsilon=1e-7)(shifted)
        model = pydtconv.Model(inputs, layers.Dense(3, activation="softmax")(layers.Flatten()(x)))
        arrays = {"x": random.standard_normal((2, 6, 6, 4), np.float32), "y": np.array([1, 2])}
        loss = pydtconv.losses.SparseCategoricalCrossentropy()
        net = networks.Net(model, loss, arrays, [np.array(variable.value) for variable in model.variables])
        want, moved = (comparison.naive(net, True, nudge) for nudge in (0.0, comparison.NUDGE["float32"]))
        (name,) = (name for name in want if name.startswith("d layer_normalization") and name.endswith("beta"))
        assert np.abs(want[name]).max() < 1e-12
        assert 1e-8 < np.abs(moved[name]).max() < 1e-4
    finally:
        config.set_floatx(floatx)


def test_a_command_that_ends_badly(monkeypatch):
    def broken(words):
        raise KeyError("a")

    def silent(words):
        return 1

    def killed(words):
        return 139

    for main, message in ((broken, "KeyError"), (silent, "without a word"), (killed, "exit status 139")):
        monkeypatch.setattr(room_commands, "main", main)
        with pytest.raises(AssertionError, match=message):
            room_commands._command(["plan", "--model", "x"])
    with pytest.raises(AssertionError, match="Traceback"):
        room_commands._check(1, "Traceback (most recent call last)", ["plan"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "room",
    ["convolutions", "kernels", "graphs", "loops", "mixed", "patches", "commands", "ranks", "configs", "recurrent"],
)
def test_a_run_of_each_room(room, tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", room, "--seed", "7", "--runs", "1", "--corpus", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"| {room} |" in run.stdout


@pytest.mark.slow
def test_a_run_of_each_reader(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "files", "--seed", "7", "--runs", str(len(READERS)), "--files", "25"]
    run = subprocess.run([*command, "--corpus", str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    for reader in READERS:
        assert f"| files | {reader.kind} | refused |" in run.stdout
    assert f"| all | | | {25 * len(READERS):,} |" in run.stdout


def test_counts_of_several_runs_are_added_up(tmp_path):
    kept = Totals(tmp_path / "totals.json")
    kept.add("files", 7, [("idx", "refused", 3)], failed=False)
    again = Totals(tmp_path / "totals.json")
    again.add("files", 8, [("idx", "refused", 2), ("idx", "taken", 1)], failed=True)
    found = Totals(tmp_path / "totals.json")
    assert found.counts == {("files", "idx", "refused"): 5, ("files", "idx", "taken"): 1}
    assert (found.following, found.seeds, found.failures) == ({"files": 9}, 2, 1)
