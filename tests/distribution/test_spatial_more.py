"""Meshes from the command line and in scripts; predictions that stay cut; the time lines of all ranks."""

import json

import pytest

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = [*needs_mpi, pytest.mark.slow]
SCRIPT = """
import keras
import numpy as np

keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
x, y = rng.normal(size=(6, 12, 10, 2)), rng.integers(0, 3, (6, 12, 10))
inputs = keras.Input((12, 10, 2))
hidden = keras.layers.Dropout(0.2)(keras.layers.Conv2D(4, 3, padding="same", activation="relu")(inputs))
model = keras.Model(inputs, keras.layers.Conv2D(3, 3, padding="same", activation="softmax")(hidden))
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, batch_size=2, epochs=2, verbose=0)
print("losses", *(f"{loss:.5f}" for loss in history.history["loss"]), model.predict(x, verbose=0).shape)
"""


def test_predictions_that_stay_cut_and_time_lines(tmp_path):
    done = run_well(2, "spatial_more.py", tmp_path)
    assert {"rank 0 done", "rank 1 done"} <= set(done.stdout.splitlines())
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    waits = [event for event in events if event["name"].startswith("halo of ") and "with rank" in event["name"]]
    assert len({event["pid"] for event in waits}) == 2
    names = {event["name"] for event in waits}
    assert any(name.startswith("halo of the gradient of") and "first" in name for name in names)


def test_an_unmodified_script_on_a_mesh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    one = run_well(0, "-m", "pydtconv", "run", "script.py").stdout
    several = run_well(4, "-m", "pydtconv", "run", "--mesh", "height=2,width=2", "script.py").stdout
    assert one.startswith("losses ")
    assert several == one


def test_training_on_a_mesh_by_the_command(tmp_path):
    words = ["train", "--model", "resnet20", "--dataset", "digits", "--epochs", "1", "--batch-size", "128"]
    done = run_well(2, "-m", "pydtconv", *words, "--mesh", "height=2", "--output", tmp_path / "out")
    assert "accuracy" in done.stdout
