"""What BackupAndRestore writes, refuses to read, and leaves behind."""

import numpy as np
import pytest

import pydtconv
from pydtconv import callbacks, layers, utils
from pydtconv.checkpoints import CheckpointError, Checkpoints, read_checkpoint, write_checkpoint
from tests.callbacks.resuming import Break, Broken, X, Y, fit, network, state_of
from tests.disks import file_size_limit


def test_another_model_or_optimizer_or_batch_size_is_refused(tmp_path):
    with pytest.raises(Broken):
        fit(network(), tmp_path, Break(1, 4))
    other = pydtconv.Sequential([layers.Input((8, 8, 3)), layers.Flatten(), layers.Dense(4, "softmax")])
    other.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    before = other.get_weights()
    with pytest.raises(CheckpointError, match=r"model 'sequential.*': expected 2 variables, found 8"):
        fit(other, tmp_path)
    assert all(map(np.array_equal, before, other.get_weights()))
    with pytest.raises(CheckpointError, match="expected the state of the optimizer SGD, found that of Adam"):
        fit(network("sgd"), tmp_path)
    with pytest.raises(CheckpointError, match="expected the metrics"):
        fit(network(metrics=["mse"]), tmp_path)
    model = network()
    before = model.get_weights()
    with pytest.raises(ValueError, match="batch_size: expected 10, as in the epoch that is to be continued, got 15"):
        fit(model, tmp_path, batch_size=15)
    assert all(map(np.array_equal, before, model.get_weights()))


OTHER_STRUCTURES = {
    "no weights": lambda state: state.pop("weights"),
    "weights of text": lambda state: state.update(weights=dict.fromkeys(state["weights"], "text")),
    "a list of variables": lambda state: state["optimizer"].update(variables=[1, 2]),
    "no position": lambda state: state.update(position=[]),
    "epoch of text": lambda state: state["position"].update(epoch="first"),
    "an order of floats": lambda state: state["position"]["batches"]["data"].update(order=np.zeros(75)),
    "an order of too large numbers": lambda state: state["position"]["batches"]["data"].update(order=np.arange(75) + 1),
    "random of text": lambda state: state.update(random={"python": "x", "numpy": "x", "seeds": "x"}),
    "metrics of another": lambda state: state["metrics"]["states"].clear(),
    "callbacks without names": lambda state: state["callbacks"].update({"BackupAndRestore/0": {}}),
    "no run": lambda state: state.pop("run"),
}


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    """The checkpoint of a training that was interrupted."""
    folder = tmp_path_factory.mktemp("broken_off")
    with pytest.raises(Broken):
        fit(network(), folder, Break(1, 4))
    (path,) = Checkpoints(folder).paths
    return path


@pytest.mark.parametrize("change", OTHER_STRUCTURES.values(), ids=OTHER_STRUCTURES)
def test_a_whole_checkpoint_of_another_structure_is_an_error_that_changes_nothing(change, broken_off, tmp_path):
    path = tmp_path / broken_off.name
    state = read_checkpoint(broken_off)
    change(state)
    write_checkpoint(path, state)
    model = network()
    before = model.get_weights()
    with pytest.raises(ValueError, match=rf"{path.name}.*expected"):
        fit(model, tmp_path)
    assert all(map(np.array_equal, before, model.get_weights()))


def test_a_torn_checkpoint_is_passed_over(tmp_path):
    utils.set_random_seed(1)
    whole = network()
    expected = state_of(whole, fit(whole, tmp_path / "whole"))
    folder = Checkpoints(tmp_path / "kept", keep=3)
    utils.set_random_seed(1)
    with pytest.raises(Broken):
        fit(network(), folder, Break(2, 2))
    torn = folder.paths[0]
    torn.write_bytes(torn.read_bytes()[:-100])
    resumed = network()
    with pytest.warns(UserWarning, match="checkpoint refused, the one before is used"):
        history = fit(resumed, folder)
    assert state_of(resumed, history) == expected


def test_a_full_disk_warns_and_training_goes_on(tmp_path):
    with pytest.raises(Broken):
        fit(network(), tmp_path / "backup", Break(1, 0), save_freq="epoch")
    before = {path.name: path.read_bytes() for path in (tmp_path / "backup").iterdir()}
    left = {}

    class Look(callbacks.Callback):
        runs_last = True

        def on_epoch_end(self, epoch, logs=None):
            left.update({path.name: path.read_bytes() for path in (tmp_path / "backup").iterdir()})

    best = callbacks.ModelCheckpoint(tmp_path / "a.weights.h5", save_weights_only=True)
    with file_size_limit(4096), pytest.warns(UserWarning, match="NOT WRITTEN, training goes on") as warned:
        history = fit(network(), tmp_path / "backup", best, Look(), save_freq="epoch")
    assert history.epoch == [0, 1, 2]
    assert left == before
    told = [str(warning.message) for warning in warned]
    assert len(told) == 4
    assert {text.split(",")[0] for text in told} == {"BackupAndRestore", "ModelCheckpoint"}
    assert all("File too large" in text and str(tmp_path) in text for text in told)
    assert not (tmp_path / "a.weights.h5").exists()


def test_a_best_model_that_a_full_disk_did_not_take_is_not_the_one_to_beat(tmp_path):
    best = callbacks.ModelCheckpoint(tmp_path / "a.weights.h5", "loss", save_best_only=True, save_weights_only=True)
    best.set_model(network())
    best.on_epoch_end(0, {"loss": 3.0})
    before = (tmp_path / "a.weights.h5").read_bytes()
    with file_size_limit(100), pytest.warns(UserWarning, match="NOT WRITTEN"):
        best.on_epoch_end(1, {"loss": 1.0})
    assert (tmp_path / "a.weights.h5").read_bytes() == before
    assert best.best == 3.0
    best.model.set_weights([weight + 1 for weight in best.model.get_weights()])
    best.on_epoch_end(2, {"loss": 2.0})
    assert (tmp_path / "a.weights.h5").read_bytes() != before
    assert best.best == 2.0


def rows_of(path):
    return [line.split(",")[0] for line in path.read_text().splitlines()]


class Limited(callbacks.Callback):
    """Makes the disk full for files above some bytes within one epoch."""

    def __init__(self, epoch, nbytes):
        self.at, self.limit = epoch, file_size_limit(nbytes)

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.at:
            self.limit.__enter__()

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.at:
            self.limit.__exit__(None, None, None)


class Late(Limited):
    runs_last = True


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_log_on_a_full_disk_is_named_and_written_later(epoch, tmp_path):
    path, seen = tmp_path / "log.csv", []
    look = callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(path.exists() and rows_of(path)))
    loggers = [callbacks.CSVLogger(path), look, Late(epoch, 64 if epoch else 10)]  # room for one row, not for two
    with pytest.warns(UserWarning, match=rf"CSVLogger, epoch {epoch + 1}: NOT WRITTEN, .*log\.csv"):
        network().fit(X, Y, epochs=3, verbose=0, callbacks=loggers)
    assert seen[epoch] == (["epoch", "0"] if epoch else False)
    assert rows_of(path) == ["epoch", "0", "1", "2"]


def test_events_on_a_full_disk_are_named_and_written_later(tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader", reason="no tensorboard")
    board = callbacks.TensorBoard(tmp_path)
    with pytest.warns(UserWarning, match=r"TensorBoard, step 1: NOT WRITTEN, .*events\.out"):
        network().fit(X, Y, epochs=3, verbose=0, callbacks=[board, Late(1, 100)])
    (path,) = (tmp_path / "train").iterdir()
    steps = [event.step for event in loader.LegacyEventFileLoader(str(path)).Load() if event.HasField("summary")]
    assert steps == [0, 1, 2]


@pytest.mark.slow
def test_a_picture_on_a_full_disk_leaves_nothing(tmp_path):
    with file_size_limit(1000), pytest.raises(OSError, match=r"curve\.png"):
        utils.plot_learning_curve({"loss": [1.0, 2.0]}, tmp_path / "curve.png")
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_when_the_loss_is_not_finite(tmp_path):
    with pytest.warns(UserWarning, match="nothing is written: the loss is nan"):
        fit(network(), tmp_path, data=(X * np.nan, Y), save_freq="epoch")
    assert not list(tmp_path.glob("*.npz"))


def test_files_kept_and_deleted(tmp_path):
    def kept(folder, **arguments):
        network().fit(X, Y, epochs=4, verbose=0, callbacks=[callbacks.BackupAndRestore(folder, **arguments)])
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else None

    assert kept(tmp_path / "a") is None
    assert kept(tmp_path / "b", delete_checkpoint=False) == ["checkpoint-000004.npz"]
    double = kept(tmp_path / "c", delete_checkpoint=False, double_checkpoint=True)
    assert double == ["checkpoint-000003.npz", "checkpoint-000004.npz"]


@pytest.mark.parametrize("save_freq", ["batch", 0, -1, True, 1.5, None])
def test_wrong_arguments(save_freq, tmp_path):
    with pytest.raises(ValueError, match="expected save_freq 'epoch' or a number of batches"):
        callbacks.BackupAndRestore(tmp_path, save_freq=save_freq)
    with pytest.raises(ValueError, match="expected backup_dir to be the name of a folder"):
        callbacks.BackupAndRestore("")
