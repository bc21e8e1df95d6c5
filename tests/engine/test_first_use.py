"""Tuning at first use: what is decided, once, and what equal runs then compute."""

import json
import subprocess
import sys

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, layers
from pydtconv.cli import main
from pydtconv.conv import timings, tuning
from tests.distribution.ranks import needs_mpi, run_well

#: seconds that tuning these networks cannot take on any machine
ENOUGH = 1000
X = np.random.default_rng(0).normal(size=(10, 8, 8, 3)).astype("float32")
Y = np.arange(10) % 4


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tuning, "ROUNDS", 1)  # how well is measured is no question here
    timings.forget()
    yield tmp_path / "cache" / "convolutions.json"
    config.set_conv_tuning(False)
    config.set_conv_workspace_limit(None)
    timings.forget()


def network(**named):
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(8, 3, padding="same", activation="relu", **named)(inputs)
    x = layers.Conv2D(8, 3, padding="same")(x)
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(layers.GlobalAveragePooling2D()(x)))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def entries(cache):
    (found,) = json.loads(cache.read_text())["builds"].values()
    return found


def trained():
    """Weights after an epoch of batches of 4, 4 and 2."""
    keras.utils.set_random_seed(3)
    model = network()
    model.fit(X, Y, batch_size=4, verbose=0)
    return model.get_weights()


def test_off_by_default_and_set_by_seconds():
    assert config.conv_tuning() == 0
    config.set_conv_tuning(True)
    assert config.conv_tuning() == config.conv_tuning_left() == 60
    config.spend_conv_tuning(70)
    assert (config.conv_tuning(), config.conv_tuning_left()) == (60, 0)
    config.set_conv_tuning(2.5)
    assert config.conv_tuning_left() == 2.5
    config.set_conv_tuning(False)
    assert config.conv_tuning() == 0
    for wrong in (-1, float("inf"), float("nan"), "10", None):
        with pytest.raises(ValueError, match="set_conv_tuning: expected seconds of 0 or more, got"):
            config.set_conv_tuning(wrong)


@pytest.mark.slow
def test_the_environment_sets_it():
    show = [sys.executable, "-c", "from pydtconv import config; print(config.conv_tuning())"]
    for text, seconds in (("12.5", "12.5"), ("", "0.0")):
        done = subprocess.run(
            ["env", f"PYDTCONV_TUNE={text}", *show], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout.strip() == seconds
    done = subprocess.run(["env", "PYDTCONV_TUNE=yes", *show], capture_output=True, text=True, check=False, timeout=60)
    assert "PYDTCONV_TUNE: expected seconds of 0 or more, got 'yes'" in done.stderr


def test_nothing_is_timed_where_it_is_off(cache):
    network().fit(X, Y, verbose=0)
    assert not cache.exists()


def test_each_batch_shape_is_tuned_once(cache, capsys):
    config.set_conv_tuning(ENOUGH)
    model = network()
    model.fit(X, Y, batch_size=4, epochs=2, verbose=0)
    found = entries(cache)
    # two layers: forward, backward_weights; backward_data of the second one; for batches of 4 and of 2
    assert len(found) == 10
    assert all(found.values())
    assert capsys.readouterr().err.count("tuned 5 passes of convolutions in ") == 2
    taken = model.plan(4).algorithms
    for node, algorithms in taken.items():
        p = node.op.problem(*(tensor.spec for tensor in node.inputs[:2]))
        for direction, name in algorithms.items():
            seconds = timings.measured(p, direction)
            assert not seconds or name == min(seconds, key=seconds.get)
    written = cache.read_bytes()
    network().fit(X, Y, batch_size=4, verbose=0)
    model.evaluate(X, Y, batch_size=4, verbose=0)  # forward of the same problems
    assert cache.read_bytes() == written
    assert capsys.readouterr().err == ""


def test_the_step_takes_what_was_found(cache, monkeypatch):
    """Slow algorithms are made to look fast; they run in the very first step."""
    monkeypatch.setattr(tuning, "measure", lambda p, direction, names, seconds: {names[-1]: 1e-3})
    config.set_conv_tuning(ENOUGH)
    model = network()
    model.train_on_batch(X, Y)
    (step,) = model._pydt_steps._steps.values()
    plan = step.executor.plan
    for node, algorithms in plan.algorithms.items():
        p = node.op.problem(*(tensor.spec for tensor in node.inputs[:2]))
        assert {algorithms[d] for d in algorithms if timings.decided(p, d)} == {
            next(iter(timings.measured(p, d))) for d in algorithms if timings.decided(p, d)
        }
    before = model.get_weights()
    config.set_conv_tuning(False)
    model.train_on_batch(X, Y)  # planned anew, from the cache
    assert len(model._pydt_steps.plans) == 2
    assert any((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))


@pytest.mark.parametrize("seconds", [ENOUGH, 1e-6], ids=["enough", "too-short"])
def test_equal_runs_have_equal_bits(seconds, cache, capsys):
    """The run that tunes, one that finds all decided, and one without tuning; however long tuning could take."""
    config.set_conv_tuning(seconds)
    first = trained()
    assert ("no time for 5 more" in capsys.readouterr().err) == (seconds < 1)
    assert len(entries(cache)) == 10
    config.set_conv_tuning(ENOUGH)
    timings.forget()
    second = trained()
    config.set_conv_tuning(False)
    third = trained()
    for a, b, c in zip(first, second, third, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_results_are_those_of_the_cost_model_up_to_rounding(cache):
    plain = trained()
    config.set_conv_tuning(ENOUGH)
    for a, b in zip(plain, trained(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_only_open_choices_are_tuned(cache):
    config.set_conv_tuning(ENOUGH)
    network(algorithm="im2col").train_on_batch(X, Y)
    assert len(entries(cache)) == 3  # the second layer's
    cache.unlink()
    timings.forget()
    config.set_conv_variant("CGT")
    try:
        network().train_on_batch(X, Y)
    finally:
        config.set_conv_variant("AUTO")
    assert not cache.exists()


def test_the_workspace_limit_holds(cache):
    config.set_conv_tuning(ENOUGH)
    config.set_conv_workspace_limit(0)
    network().train_on_batch(X, Y)
    for seconds in entries(cache).values():
        assert "im2col" not in seconds


def test_a_damaged_file_is_replaced(cache):
    cache.parent.mkdir()
    cache.write_text('{"format": "pydtconv convolution timings", "version": 0')
    config.set_conv_tuning(ENOUGH)
    with pytest.warns(RuntimeWarning, match="convolutions.json is ignored"):
        network().train_on_batch(X, Y)
    assert len(entries(cache)) == 5


def test_a_folder_that_cannot_be_written_means_no_tuning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "file" / "cache"))
    config.set_conv_tuning(ENOUGH)
    timings.forget()
    with pytest.warns(RuntimeWarning) as told:
        network().train_on_batch(X, Y)
    expected = "chosen by the cost model, as what tuning finds cannot be kept: [Errno 20] Not a directory"
    assert expected in str(told[-1].message)


@pytest.mark.slow
def test_the_command(cache, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["train", "--model", "resnet20", "--dataset", "digits", "--samples", "16", "--epochs", "1"]
    assert main([*words, "--tune", "20", "--workspace-limit", "64"]) == 0
    assert "tuned " in capsys.readouterr().err
    assert entries(cache)
    assert config.conv_workspace_limit() == 64 << 20
    assert main([*words, "--tune", "-1"]) == 2
    assert "--tune: expected seconds of 0 or more, got -1.0" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.mpi
@needs_mpi[1]
def test_ranks_of_a_machine_decide_once(cache, tmp_path):
    done = run_well(2, "tuned", tmp_path, PYDTCONV_TUNE=30, PYDTCONV_CACHE=cache.parent)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    assert len(entries(cache)) == 5
    assert done.stderr.count("tuned ") <= 1  # the other rank's is not told
