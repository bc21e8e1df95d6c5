"""docs/promises.md says what is so: public modules, versions of files."""

import importlib
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import pydtconv

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text()
#: of the table of files: the name of a constant, and its value
VERSIONS = re.findall(r"\| `([\w.]+)\.(VERSION)` \| (\d+) \|", PAGE)


@pytest.mark.parametrize(("module", "name", "version"), VERSIONS, ids=[module for module, *_ in VERSIONS])
def test_versions_are_those_of_the_code(module, name, version):
    assert getattr(importlib.import_module(module), name) == int(version)


def test_each_kind_of_file_with_a_version_is_there():
    files = (ROOT / "pydtconv").rglob("*.py")
    having = [file for file in files if re.search(r"^(FORMAT, )?VERSION\b.* = ", file.read_text(), re.M)]
    assert {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in having} == {m for m, *_ in VERSIONS}


def test_the_reference_has_each_module_of_the_package_and_its_names():
    page = (ROOT / "docs/reference/index.md").read_text()
    toctree = re.search(r"```{toctree}\n.*?\n\n(.*?)```", page, re.S)[1].split()
    assert toctree == re.findall(r"^\| \[`pydtconv\.(\w+)`\]", page, re.M) == sorted(pydtconv._MODULES)
    for name in toctree:
        module = getattr(pydtconv, name)
        for public in getattr(module, "__all__", []):
            assert hasattr(module, public), f"{name}.{public}"


def test_the_changelog_is_short_and_has_its_headings():
    text = (ROOT / "CHANGELOG.md").read_text()
    parts = dict(re.findall(r"^## \[([\w.]+)\][^\n]*\n(.*?)(?=^## |\Z)", text, re.S | re.M))
    assert pydtconv.__version__ in parts
    for version, part in parts.items():
        assert len(part.splitlines()) <= 80, version
        headings = re.findall(r"^### (.*)$", part, re.M)
        assert headings == [name for name in ("Added", "Changed", "Fixed", "Performance") if name in headings], version


def test_a_checkpoint_of_version_1_0_is_read(tmp_path):
    """tests/checkpoints/checkpoint-000002.npz was written by 1.0.0, after two epochs."""
    shutil.copy(ROOT / "tests/checkpoints/checkpoint-000002.npz", tmp_path)
    model = pydtconv.Sequential([pydtconv.Input((2,)), pydtconv.layers.Dense(2), pydtconv.layers.Dropout(0.5)])
    model.compile(pydtconv.optimizers.Adam(0.1), "mse", metrics=["mae"])
    backup = pydtconv.callbacks.BackupAndRestore(tmp_path, delete_checkpoint=False)
    data = {"x": np.ones((6, 2)), "y": np.zeros((6, 2)), "batch_size": 2, "verbose": 0, "callbacks": [backup]}
    history = model.fit(**data, epochs=2)
    np.testing.assert_allclose(history.history["loss"], [8.0283585, 2.2654701], rtol=1e-6)
    np.testing.assert_allclose(model.get_weights()[1], [-0.3815108, -0.508069], rtol=1e-6)
    assert int(model.optimizer.iterations) == 6
    assert model.fit(**data, epochs=3).epoch == [0, 1, 2]
