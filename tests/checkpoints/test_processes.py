"""Real processes that are killed, interrupted, or run out of disk while they train, and go on afterwards."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.disks import run_on_small_disk
from tests.soak import training as soaked

SCRIPT = Path(__file__).with_name("training.py")
LIMIT = 120
# what make test-all adds: moments of an interrupt; data of the trainings that are killed, and how often they save
MOMENTS = ["step 1 15", "test 2 0", "test 2 1"]
KILLED = [("arrays", "1"), ("arrays", "7"), ("arrays", "epoch"), ("images", "1"), ("images", "7"), ("images", "epoch")]


def start(*arguments):
    command = [sys.executable, SCRIPT, *map(str, arguments)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, **pipes, text=True)


def finished(process):
    """(exit status, stdout, stderr) of a process that must end by itself."""
    try:
        out, error = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return process.returncode, out, error


def wait_for(process, line):
    """Reads the process's output up to a line."""
    for found in process.stdout:
        if found.strip() == line:
            return
    pytest.fail(f"no line {line!r}: {process.stderr.read()}")


def stop_at(line, number, *arguments):
    """The process, sent a signal after it has said the line."""
    process = start(*arguments)
    wait_for(process, line)
    process.send_signal(number)
    return process


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """160 images in a folder."""
    image = pytest.importorskip("PIL.Image")
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(1)
    for i in range(160):
        (root / str(i % 4)).mkdir(exist_ok=True)
        image.fromarray(rng.integers(0, 255, (9, 9, 3), dtype=np.uint8)).save(root / str(i % 4) / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results of trainings that were not interrupted, by their data."""
    folder, known = tmp_path_factory.mktemp("whole"), {}

    def results(data):
        if data not in known:
            path = folder / f"{len(known)}.npz"
            status, _, error = finished(start(folder / f"{len(known)}", path, data))
            assert status == 0, error
            known[data] = path
        return known[data]

    return results


def assert_equal_bits(path, other):
    with np.load(path) as a, np.load(other) as b:
        assert a.files == b.files
        for name in a.files:
            assert a[name].tobytes() == b[name].tobytes(), name


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "save_freq"), KILLED)
def test_killed_at_random_moments(kind, save_freq, whole, request, tmp_path):
    data = str(request.getfixturevalue("images")) if kind == "images" else "arrays"
    arguments = (tmp_path / "saved", tmp_path / "result.npz", data, save_freq)
    seed = time.time_ns()
    moment = random.Random(seed)
    for kill in range(3):
        process = stop_at(f"step {kill + 1} {moment.randrange(16)}", signal.SIGKILL, *arguments)
        time.sleep(moment.random() * 0.02)
        assert finished(process)[0] == -signal.SIGKILL
    status, out, error = finished(start(*arguments))
    assert status == 0, error
    assert "step 0 0" not in out
    assert (tmp_path / "result.npz").exists(), f"seed {seed}"
    assert_equal_bits(whole(data), tmp_path / "result.npz")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "at"),
    [
        *((number, at) for number in (signal.SIGINT, signal.SIGTERM) for at in ("step 1 6", *MOMENTS)),
        (signal.SIGHUP, "step 1 6"),
    ],
)
def test_interrupts_end_with_a_checkpoint(number, at, whole, tmp_path):
    arguments = (tmp_path / "saved", tmp_path / "result.npz", "arrays")
    process = stop_at(at, number, *arguments, "epoch", at)
    process.stdin.write("\n")  # it has waited there, however late this process was
    status, out, error = finished(process)
    assert status == (-signal.SIGINT if number == signal.SIGINT else 128 + number)
    assert f"{number.name}: training ends after this step, with a checkpoint" in error
    assert "checkpoint: " in error
    assert len(out.splitlines()) <= 2  # the rest of that step, the next one at most
    assert not (tmp_path / "result.npz").exists()
    status, out, error = finished(start(*arguments))
    assert status == 0, error
    assert_equal_bits(whole("arrays"), tmp_path / "result.npz")


def test_the_shell_sees_130():
    """As it does of each process that ends by KeyboardInterrupt."""
    run = subprocess.run(["sh", "-c", f"{sys.executable} -c 'raise KeyboardInterrupt'; echo $?"], capture_output=True)
    assert run.stdout.strip() == b"130"


@pytest.mark.slow
def test_a_second_interrupt_ends_at_once(tmp_path):
    script = f"""
import sys, time
sys.path.insert(0, {str(SCRIPT.parent)!r})
import training
from pydtconv import callbacks
class Slow(callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        print("slow", flush=True)
        time.sleep(1000)
callbacks.EarlyStopping = lambda *arguments, **options: Slow()
training.main(*sys.argv[1:])
"""
    arguments = [str(tmp_path / "saved"), str(tmp_path / "result.npz"), "arrays"]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(process, "slow")
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "\n"
    assert "INT: training ends after this step" in process.stderr.readline()
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    status, _, error = finished(process)
    assert status == -signal.SIGINT
    assert "checkpoint: " not in error
    assert not list((tmp_path / "saved").iterdir())


def test_a_terminal_that_is_closed_ends_with_a_checkpoint(tmp_path):
    """SIGHUP, and messages that nobody takes."""
    script = """
import os, signal, sys
import numpy as np, pydtconv
from pydtconv import callbacks, layers
model = pydtconv.Sequential([layers.Input((4,)), layers.Dense(2)])
model.compile("sgd", "mse")
def close(batch, logs):
    os.dup2(os.open("/dev/full" if os.path.exists("/dev/full") else os.devnull, os.O_WRONLY), 2)
    signal.raise_signal(signal.SIGHUP)
closes = callbacks.LambdaCallback(on_train_batch_end=close)
model.fit(np.ones((8, 4)), np.ones((8, 2)), verbose=0, callbacks=[closes, callbacks.BackupAndRestore(sys.argv[1])])
"""
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=LIMIT)
    assert (run.returncode, run.stderr) == (128 + signal.SIGHUP, "")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000001.npz"]


@pytest.mark.slow
def test_handlers_of_the_program_stay_and_come_back(tmp_path):
    script = f"""
import signal, sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
own = lambda number, frame: None
signal.signal(signal.SIGTERM, own)
import training
training.main(*sys.argv[1:])
assert signal.getsignal(signal.SIGTERM) is own
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    arguments = [str(tmp_path / "saved"), str(tmp_path / "result.npz"), "arrays"]
    run = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=LIMIT)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_a_full_disk(whole, tmp_path):
    """A disk that holds one checkpoint: the next ones fail, training goes on, and the first one stays."""
    (disk := tmp_path / "disk").mkdir()
    script = f"""
import os, shutil, sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import training
folder, result = sys.argv[1:3]
from pydtconv import callbacks
class Fill(callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            with open(folder + "/fill", "wb") as file:
                file.write(bytes(shutil.disk_usage(folder).free - 8192))
callbacks.EarlyStopping = lambda *arguments, **options: Fill()
training.main(folder + "/saved", result, "arrays")
print(sorted(os.listdir(folder + "/saved")))
"""
    run = run_on_small_disk(script, disk, 400, str(disk), str(tmp_path / "result.npz"))
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "['checkpoint-000001.npz']"
    assert run.stderr.count("NOT WRITTEN, training goes on: [Errno 28] No space left on device") == 3
    assert f"{disk}/saved/checkpoint-000002.npz" in run.stderr


@pytest.mark.slow
def test_the_command_goes_on(tmp_path):
    """`pydtconv train`, killed and interrupted, ends with the weights of a run that was not."""
    command = [sys.executable, "-m", "pydtconv", "train", "--model", "resnet20", "--dataset", "digits"]
    command += ["--epochs", "6", "--augment", "--batch-size", "16", "--samples", "240"]

    def run(name, *options):
        words = [*command, "--output", str(tmp_path / name), *options]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)

    assert finished(run("whole"))[0] == 0
    options = ["--checkpoint", "saved", "--save-every", "7", "--keep", "2"]
    for number, status in (signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130), (signal.SIGTERM, 143):
        process = run("broken", *options, "--resume")
        before = newest(tmp_path / "saved")
        deadline = time.monotonic() + LIMIT
        while newest(tmp_path / "saved") <= before + 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        found, _, error = finished(process)
        assert found == status, error
        assert 1 <= len(list((tmp_path / "saved").glob("*.npz"))) <= 3
    refused = finished(run("broken", *options))
    assert refused[0] == 2
    assert "saved holds checkpoints: go on with --resume, or empty it" in refused[2]
    status, out, error = finished(run("broken", *options, "--resume"))
    assert status == 0, error
    assert "going on with epoch" in out
    import h5py

    with h5py.File(tmp_path / "whole.weights.h5") as a, h5py.File(tmp_path / "broken.weights.h5") as b:
        names = []
        a.visit(names.append)
        for name in names:
            if isinstance(a[name], h5py.Dataset):
                assert np.array_equal(a[name], b[name]), name


def newest(folder):
    return max((int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.npz")), default=0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--resume"], "--resume: expected --checkpoint FOLDER with it"),
        (["--keep", "3"], "--keep: expected --checkpoint FOLDER with it"),
        (["--checkpoint", "a", "--keep", "0"], "expected keep to be an integer of 1 or more, got 0"),
        (["--checkpoint", "a", "--save-every", "0"], "expected save_freq 'epoch' or a number of batches, got 0"),
        (["--checkpoint", os.devnull], "--checkpoint: "),
    ],
    ids=["resume", "keep", "none", "never", "file"],
)
def test_options_of_the_command(options, told, tmp_path, monkeypatch, capsys):
    from pydtconv.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["train", "--model", "mlp", "--dataset", "digits", *options]) == 2
    assert told in capsys.readouterr().err


def test_the_training_that_is_soaked_is_what_it_imports():
    """`make soak` is not part of what each change must pass."""
    model = soaked.network()
    assert model.optimizer.momentum == 0.9
    assert soaked.launched()[0] >= 1
    assert len(soaked.usage()) == 4
