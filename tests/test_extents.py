"""Sizes that no memory holds are refused by name: in each layer, operator and function, and in files."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pydtconv import Input, Model, Variable, layers, ops, saving
from pydtconv.extents import LARGEST, MOST_ELEMENTS, check, check_elements, check_products
from pydtconv.files.reading import BadFileError
from tests.extremes import walk

ROOT = Path(__file__).parents[1]


def test_limits():
    check("a", (1, (LARGEST, -LARGEST), None, "same", 10.0**30, np.int64(3)))
    check_elements("a", (None, 2**25, 2**25))
    check_products("a", 2**62)
    for value in (2**31, -(2**31), 10**30, np.int64(2**40), [1, (2**31,)]):
        with pytest.raises(ValueError, match="a: expected integers of"):
            check("a", value)
    with pytest.raises(ValueError, match="a: expected integers of 1 or more, got 0"):
        check("a", (3, 0), least=1)
    with pytest.raises(ValueError, match=r"a: expected at most 1125899906842624 elements, got shape \(None, 33554432"):
        check_elements("a", (None, 2**25, 2**25 + 1))
    with pytest.raises(ValueError, match="a: expected at most 4611686018427387904 products of a pass"):
        check_products("a", 2**62 + 1)


@pytest.mark.parametrize(
    "room", ["operators", *(pytest.param(room, marks=pytest.mark.slow) for room in ("layers", "functions", "onnx"))]
)
def test_each_number_of_each(room):
    """In a process of its own: what is not refused may end it, or take all memory, or never end."""
    if room == "onnx":
        pytest.importorskip("onnx")
    command = [sys.executable, "-W", "ignore", "-m", "tests.extremes.walk", room]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    lines = found.stdout.splitlines()
    assert found.returncode == 0, f"ended after {lines[-1:]}: {found.stderr[-500:]}"
    assert lines[:-1] == []
    assert int(lines[-1].split()[0]) > {"layers": 1000, "operators": 800, "functions": 4000, "onnx": 50}[room]


def test_the_walk_has_all():
    """Every layer is walked, and every operator that has extents."""
    cases = {name.partition(".")[0].partition(" ")[0] for name, _ in walk.layer_cases()}
    made = {layer.__name__ for name in layers.__all__ if isinstance(layer := getattr(layers, name), type)}
    assert made - cases == walk.LEFT_OUT
    walked = {type(op) for op, _ in walk.OPERATORS}
    with_extents = {op for op in vars(ops).values() if isinstance(op, type) and getattr(op, "extent_fields", ())}
    assert with_extents
    assert not with_extents - walked


@pytest.mark.parametrize("pool", [ops.MaxPool, ops.AveragePool])
def test_windows_far_larger_than_the_image(pool):
    """What the limits allow is computed: of the whole image, and its gradient."""
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 3)).astype("float32")
    whole = x.max((1, 2)) if pool is ops.MaxPool else x.mean((1, 2))
    for size, strides in (((1000, 2_000_000), (LARGEST, LARGEST)), ((40_000, 50_000), (2**20, 2**30))):
        y = pool(size, strides, "same")(x)
        assert y.shape == (2, 1, 1, 3)
        np.testing.assert_allclose(y[:, 0, 0], whole, rtol=1e-5)
    inputs = Input((5, 6, 3))
    kind = layers.MaxPooling2D if pool is ops.MaxPool else layers.AveragePooling2D
    model = Model(inputs, layers.Flatten()(kind((40_000, 50_000), LARGEST, padding="same")(layers.Dense(3)(inputs))))
    model.compile("sgd", "mse")
    model.fit(x, np.zeros((2, 3)), verbose=0)
    assert all(np.isfinite(variable.value).all() for variable in model.variables)


def test_results_that_nothing_addresses():
    x = Input((2**20, 2**10, 1))
    for call in (
        lambda: layers.UpSampling2D((2**16, 2**16))(x),
        lambda: layers.ZeroPadding2D(LARGEST)(x),
        lambda: ops.one_hot(Input((2**25,), dtype="int32"), 2**30),
        lambda: ops.MaxPool((2**16, 2**16), (1, 1), "same")(x),
        lambda: layers.AveragePooling2D((1024, 2**21), strides=1, padding="same")(x),
        lambda: ops.Attention()(*[Input((2**29, 64, 128))] * 3),
        lambda: layers.Dense(LARGEST)(Input((2**20,))),
        lambda: Variable(lambda shape, dtype: pytest.fail("made"), (2**26, 2**26)),
        lambda: Input((2**31,)),
    ):
        with pytest.raises(ValueError, match=r"expected (at most|integers of at most|windows of at most)"):
            call()
    assert MOST_ELEMENTS == 2**50


def test_files(tmp_path):
    """Each extent of a model's config is another one, in turn: refused when the file is loaded."""
    x = Input((8, 8, 3))
    y = layers.ZeroPadding2D(1)(layers.AveragePooling2D((3, 2), 1)(x))
    y = ops.AveragePool((3, 2), (1, 1))(layers.UpSampling2D(2)(y))
    y = layers.Cropping2D(1)(layers.Conv2D(4, 3)(y))
    Model(x, layers.RepeatVector(3)(layers.GlobalMaxPooling2D()(y))).save(tmp_path / "whole.keras")
    with zipfile.ZipFile(tmp_path / "whole.keras") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(members["config.json"])
    count = 0
    for where, value, changed in walk.changed(config, (2**31, 2**62, 10**30)):
        if not re.search(r"\.(pool_size|strides|padding|size|kernel_size|cropping|filters|n)(\.|$)", where):
            continue
        count += 1
        with zipfile.ZipFile(tmp_path / "changed.keras", "w") as archive:
            for name, data in members.items():
                archive.writestr(name, json.dumps(changed) if name == "config.json" else data)
        with pytest.raises(BadFileError, match=rf"changed\.keras.*expected.*{value}"):
            saving.load_model(tmp_path / "changed.keras")
    assert count > 50
