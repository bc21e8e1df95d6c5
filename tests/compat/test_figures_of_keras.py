"""The scripts of keras_figures.py: Keras and `pydtconv run` give the same figures from the same weights."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.real_keras import import_keras

SCRIPT = Path(__file__).parent / "keras_figures.py"
NAMES = (
    "multi_input", "class_weights", "sample_weights", "custom_objects", "callbacks_", "schedules", "fine_tuning",
    "mixed_losses", "generators", "save_resume", "own_loss",
)  # fmt: skip


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """(Keras's, ours) by script."""
    import_keras()
    folder = tmp_path_factory.mktemp("figures")
    env = {**os.environ, "KERAS_BACKEND": "torch"}
    for turn, command in ("first", []), ("second", ["-m", "pydtconv", "run"]):
        ended = subprocess.run(
            [sys.executable, *command, str(SCRIPT), str(folder), turn], capture_output=True, text=True, env=env
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
    return [json.loads((folder / f"{turn}.json").read_text()) for turn in ("first", "second")]


def differences(expected, found, path=""):
    """What is not the same in two structures; numbers within 1e-5 of their size."""
    if isinstance(expected, dict):
        if not isinstance(found, dict) or set(expected) != set(found):
            return [(path, expected, found)]
        return [each for key in expected for each in differences(expected[key], found[key], f"{path}/{key}")]
    if isinstance(expected, list):
        if not isinstance(found, list) or len(expected) != len(found):
            return [(path, expected, found)]
        pairs = enumerate(zip(expected, found, strict=True))
        return [each for i, (a, b) in pairs for each in differences(a, b, f"{path}[{i}]")]
    if isinstance(expected, float):
        return [] if np.isclose(expected, found, rtol=1e-5, atol=1e-7) else [(path, expected, found)]
    return [] if expected == found else [(path, expected, found)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_figures_are_those_of_keras(figures, name):
    theirs, ours = figures
    assert theirs[name]
    assert differences(theirs[name], ours[name]) == []


def test_differences_are_found():
    assert differences({"a": [1.0, "x"]}, {"a": [1.000001, "x"]}) == []
    assert differences({"a": [1.0, "x"]}, {"a": [1.001, "y"]}) == [("/a[0]", 1.0, 1.001), ("/a[1]", "x", "y")]
    assert differences({"a": 1}, {}) == [("", {"a": 1}, {})]
