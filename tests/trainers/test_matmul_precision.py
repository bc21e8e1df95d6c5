"""Training in float32 whose products are of bfloat16: `config.set_float32_matmul_precision`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, layers, microkernels
from pydtconv.conv import matmul_precision
from pydtconv.graph.ir.graph import Graph, Thresholds
from tests.marks import slow
from tests.trainers.test_mixed_bfloat16 import batch, built, distance, ours


@pytest.fixture(autouse=True)
def _default():
    yield
    config.set_float32_matmul_precision("highest")
    keras.utils.clear_session(free_memory=False)


@pytest.fixture
def amx(monkeypatch):
    """As if AMX were active, wherever the test runs."""
    monkeypatch.setattr(matmul_precision, "reason", lambda: None)


def test_bad_words_change_nothing():
    for bad in ("fast", "High", None, 1):
        message = rf"set_float32_matmul_precision: expected 'highest', 'high' or 'medium', got {bad!r}"
        with pytest.raises(ValueError, match=message):
            config.set_float32_matmul_precision(bad)
    assert config.float32_matmul_precision() == keras.config.float32_matmul_precision() == "highest"


@pytest.mark.slow
@pytest.mark.parametrize(("word", "seen"), [("medium", "medium"), ("none", "PYDTCONV_MATMUL_PRECISION: expected")])
def test_the_environment_sets_it(word, seen):
    code = "from pydtconv import config; print(config.float32_matmul_precision())"
    env = {"PYDTCONV_MATMUL_PRECISION": word, "PATH": "/usr/bin"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert seen in result.stdout + result.stderr


def test_the_plan_says_it_and_a_change_counts_at_once(amx):
    """A model that has trained is planned anew, and back again; the plan names algorithms and precision."""
    inputs = keras.Input((8, 8, 64))
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(256, 3, 2, padding="same")(inputs))
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(x))
    model.compile(keras.optimizers.SGD(0.0), "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 8, 8, 64)).astype("float32"), rng.integers(0, 10, 64)
    losses, plans = [], []
    for precision in ("highest", "medium", "high", "highest"):
        config.set_float32_matmul_precision(precision)
        losses.append(float(model.train_on_batch(x, y)))
        plans.append(str(model.plan(64)))
        model.reset_metrics()
    assert losses[0] == losses[3]
    assert losses[1] != losses[0]
    assert ["direct_bf16" in plan for plan in plans] == [False, True, True, False]
    assert ["float32 products" in plan for plan in plans] == [False, True, True, False]
    assert "direct_bf16x3" in plans[2]
    assert "high: three products of bfloat16 halves where they are faster" in plans[2]


def test_without_amx_the_plan_says_that_it_is_as_highest(monkeypatch):
    monkeypatch.setattr(matmul_precision, "reason", lambda: "only amx_bf16 is fast")
    config.set_float32_matmul_precision("high")
    model = keras.Sequential([keras.Input((8, 8, 64)), layers.Conv2D(64, 3)])
    model.compile("sgd", "mse")
    plan = str(model.plan(32))
    assert "direct_bf16" not in plan
    assert "high, computed as highest: only amx_bf16 is fast" in plan


@pytest.mark.parametrize("activation", ["relu", slow("gelu")])
def test_dense_layers_of_many_rows(amx, activation):
    """All gradients are near those of "highest", and not the same; few rows stay float32's."""

    def gradients(precision, rows):
        config.set_float32_matmul_precision(precision)
        keras.utils.set_random_seed(2)
        model = keras.Sequential(
            [keras.Input((130,)), layers.Dense(140, activation=activation), layers.Dense(150, use_bias=False)]
        )
        model.compile(keras.optimizers.SGD(1.0), "mse")
        before = model.get_weights()
        rng = np.random.default_rng(0)
        model.train_on_batch(rng.normal(size=(rows, 130)), rng.normal(size=(rows, 150)))
        return [b - a for a, b in zip(model.get_weights(), before, strict=True)]

    for rows, worst in ((256, {"high": 3e-5, "medium": 2e-2}), (64, {"high": 0.0, "medium": 0.0})):
        exact = gradients("highest", rows)
        for precision, allowed in worst.items():
            away = distance(gradients(precision, rows), exact)
            assert away <= allowed
            assert (away > 0) == (allowed > 0)


@pytest.mark.slow
@pytest.mark.skipif(microkernels.selected("bfloat16").name != matmul_precision.FAST, reason="this CPU has no AMX")
@pytest.mark.parametrize("name", ["residual", "plain", "dense"])
def test_gradients_are_near_those_of_float64(name):
    """With "high" at most twice as far as with "highest", where no ReLU or maximum changes its mind: in the others a
    few may do, which weighs more than all rounding."""
    for seed in range(2):
        exact = ours(built(name, "float64", 32), batch(seed))[1]
        away = {}
        for precision in ("highest", "high", "medium"):
            config.set_float32_matmul_precision(precision)
            away[precision] = distance(ours(built(name, "float32", 32), batch(seed))[1], exact)
        assert away["high"] < away["medium"] / 5, away
        assert away["medium"] < 0.2
        assert name != "plain" or away["high"] < 2 * away["highest"], away


def test_the_command_takes_it(capsys):
    from pydtconv.cli import main

    words = ["plan", "--model", "resnet20", "--image-size", "16", "--classes", "3", "--batch-size", "4"]
    assert main([*words, "--matmul-precision", "high"]) == 0
    assert "float32 products: high" in capsys.readouterr().out
    assert main([*words, "--matmul-precision", "best"]) != 0
    assert "--matmul-precision: set_float32_matmul_precision: expected 'highest'" in capsys.readouterr().err


def test_rows_of_a_gradient_are_products_of_the_same_kind(amx, monkeypatch):
    """Weights that are updated some rows at a time, 20 at last, are those that are updated at once."""
    config.set_float32_matmul_precision("medium")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(128, 300)).astype("float32"), rng.normal(size=(128, 130)).astype("float32")
    found = []
    for rows in (1000, 140):
        monkeypatch.setattr(Graph, "thresholds", Thresholds(applied_gradients=0, gradient_rows=rows * 130 * 4))
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((300,)), layers.Dense(130)])
        model.compile(keras.optimizers.SGD(1.0), "mse")
        model.train_on_batch(x, y)
        assert any(getattr(step, "rows", None) is not None for step in model.plan(128).steps) is (rows == 140)
        found.append(model.get_weights()[0])
    np.testing.assert_array_equal(*found)
