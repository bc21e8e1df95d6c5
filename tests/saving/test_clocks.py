"""Machines whose clock is not set, as boards without a battery: everything that is written while training is."""

import time

import numpy as np
import pytest

from pydtconv import Input, Sequential, callbacks, layers, saving

CALLBACKS = {
    "ModelCheckpoint": lambda path: callbacks.ModelCheckpoint(path / "a.keras"),
    "BackupAndRestore": lambda path: callbacks.BackupAndRestore(path / "backup"),
    "CSVLogger": lambda path: callbacks.CSVLogger(path / "a.csv"),
}


@pytest.mark.parametrize("now", [-1e9, 0.0, 5e9], ids=["before 1970", "1970", "after 2107"])
@pytest.mark.parametrize("make", CALLBACKS.values(), ids=CALLBACKS)
def test_a_clock_that_is_wrong(make, now, tmp_path, monkeypatch):
    model = Sequential([Input((3,)), layers.Dense(2)])
    model.compile("sgd", "mse")
    localtime = time.localtime
    monkeypatch.setattr(time, "time", lambda: now)
    monkeypatch.setattr(time, "localtime", lambda seconds=None: localtime(now if seconds is None else seconds))
    model.fit(np.ones((2, 3)), np.ones((2, 2)), verbose=0, callbacks=[make(tmp_path)])
    model.save(tmp_path / "b.keras")
    for found, expected in zip(saving.load_model(tmp_path / "b.keras").get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
