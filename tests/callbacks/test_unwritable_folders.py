"""Callbacks that write where nothing can be written: an error before training begins, a warning while it runs."""

import inspect
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pydtconv import callbacks
from tests.callbacks.resuming import X, Y, network
from tests.disks import file_size_limit, run_on_small_disk

#: what each writes below a folder
WRITERS = {
    "BackupAndRestore": lambda folder: callbacks.BackupAndRestore(folder, delete_checkpoint=False),
    "CSVLogger": lambda folder: callbacks.CSVLogger(folder / "log.csv"),
    "ModelCheckpoint": lambda folder: callbacks.ModelCheckpoint(folder / "run-{epoch}" / "a.keras"),
    "TensorBoard": lambda folder: callbacks.TensorBoard(folder),
}


def test_all_writers_are_here():
    """A callback that writes has an argument that may be a path."""
    found = [
        name
        for name, kind in vars(callbacks).items()
        if isinstance(kind, type)
        and any("Path" in str(argument.annotation) for argument in inspect.signature(kind).parameters.values())
    ]
    assert sorted(found) == sorted(WRITERS)


def refused(name, folder):
    """The error of a training that writes there, without a step of it."""
    model, batches = network(), []
    before = model.get_weights()
    look = callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: batches.append(batch))
    with pytest.raises(OSError, match=f"^.Errno [0-9]+. {name}: cannot write: .*; training has not begun: ") as error:
        model.fit(X, Y, verbose=0, callbacks=[WRITERS[name](folder), look])
    assert all(map(np.array_equal, before, model.get_weights()))
    assert batches == []
    assert str(folder) in str(error.value)


def skip_without_package(name):
    if name == "TensorBoard":
        pytest.importorskip("tensorboard", reason="no tensorboard")


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_cannot_be_made_is_found_before_training(name, tmp_path):
    skip_without_package(name)
    (tmp_path / "file").touch()
    refused(name, tmp_path / "file" / "folder")


READ_ONLY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.callbacks.test_unwritable_folders import refused
for name in sys.argv[3:]:
    refused(name, Path(sys.argv[1]))
"""


def test_a_folder_that_is_read_only_is_found_before_training(tmp_path):
    (disk := tmp_path / "disk").mkdir()
    names = [name for name in WRITERS if name != "TensorBoard" or find_spec("tensorboard")]
    root = Path(__file__).parents[2]
    done = run_on_small_disk(READ_ONLY, disk, 64, str(disk), str(root), *names, read_only=True)
    assert done.returncode == 0, done.stderr


class Away(callbacks.Callback):
    """Once training has begun, a file takes the folder's place: nothing can be written there."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 0:
            shutil.rmtree(self.folder)
            self.folder.touch()


@pytest.mark.parametrize("disk", ["full", "gone"])
@pytest.mark.parametrize("name", WRITERS)
def test_while_a_model_is_trained_each_is_a_warning(name, disk, tmp_path):
    skip_without_package(name)
    model, folder = network(), tmp_path / "folder"
    others = [Away(folder)] if disk == "gone" else []
    writer = WRITERS[name](folder)
    with warnings.catch_warnings(record=True) as told, file_size_limit(8 if disk == "full" else 1 << 30):
        warnings.simplefilter("always")
        history = model.fit(X, Y, epochs=2, verbose=0, callbacks=[writer, *others])
    assert history.epoch == [0, 1]
    told = [str(warning.message) for warning in told]
    assert [text.split(",")[0] for text in told] == [name] * 2
    assert all("NOT WRITTEN, training goes on: " in text and str(folder) in text for text in told)
