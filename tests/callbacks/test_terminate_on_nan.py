"""Losses that are not finite: said once in the epoch's line; the first step and layer where somebody asks."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.callbacks import TerminateOnNaN
from pydtconv.cli import main

HINT = " - not finite: TerminateOnNaN(find_layer=True), or --debug-nan, names the first step and layer"


def network(activation=None):
    inner = [layers.Conv2D(2, 3, name="conv"), layers.Activation(activation or "relu", name="act"), layers.Flatten()]
    model = keras.Sequential([keras.Input((6, 6, 1), name="photo"), *inner, layers.Dense(1, name="top")], name="net")
    model.compile("sgd", "mse")
    return model


X, Y = np.ones((8, 6, 6, 1), "float32"), np.ones((8, 1), "float32")
BAD = X.copy()
BAD[5, 2, 2] = np.nan


def ends(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("4/4")]


def test_the_epochs_line_says_it_once_and_which_sample(capsys):
    network().fit(BAD, Y, batch_size=2, epochs=3, shuffle=False)
    first, *others = ends(capsys)
    assert first.endswith("loss: nan - not finite: sample 5 of x holds NaN or infinity")
    assert not any("not finite" in line for line in others)
    model = network()
    model.fit(X, Y, batch_size=2, epochs=2)
    assert not any("not finite" in line for line in ends(capsys))
    model.fit(X, np.full_like(Y, np.inf), batch_size=2)
    assert ends(capsys)[0].endswith("not finite: sample 0 of y holds NaN or infinity")
    model.get_layer("top").set_weights([np.full((32, 1), np.nan), np.zeros(1)])
    model.fit(X, Y, batch_size=2)
    assert ends(capsys)[0].endswith(HINT)


def test_of_validation_and_of_streams(capsys):
    network().fit(X, Y, batch_size=2, validation_data=(BAD, Y))
    assert ends(capsys)[0].endswith(HINT)
    network().fit(((BAD[i : i + 2], Y[:2]) for i in range(0, 8, 2)), steps_per_epoch=4)
    assert ends(capsys)[0].endswith(HINT)


def first(model, x=X, y=Y):
    callback = TerminateOnNaN(raise_error=True, find_layer=True)
    with pytest.raises(RuntimeError, match="training ends") as error:
        model.fit(x, y, batch_size=2, shuffle=False, verbose=0, callbacks=[callback])
    return str(error.value)


def test_the_first_layer_and_step_are_named():
    told = first(network(), BAD)
    assert told == (
        "batch 2: the loss is nan; training ends; first not finite: layer 'net/conv', forward of batch 2, "
        "as its input 'x0' is"
    )
    model = network()
    model.get_layer("top").set_weights([np.full((32, 1), np.inf), np.zeros(1)])
    assert "layer 'net/top', forward of batch 0, as a weight" in first(model)
    told = first(network(lambda x: keras.ops.log(x - 1000.0)))
    assert "layer 'net/act', forward of batch 0" in told
    assert " as " not in told


def test_gradients_that_are_not_finite_are_named_though_the_next_loss_shows_them():
    told = first(network(lambda x: keras.ops.sqrt(x * 0.0)))
    assert told.startswith("batch 1: the loss is nan")
    assert "layer 'net/act', backward of batch 0" in told


def test_infinity_that_does_no_harm_is_not_named():
    model = network(lambda x: x + keras.ops.minimum(keras.ops.stop_gradient(keras.ops.exp(x * 0 + 1e4)), 1.0))
    bad = X.copy()
    bad[6:] = np.nan
    assert "layer 'net/conv', forward of batch 3" in first(model, bad)


def test_without_asking_nothing_is_watched():
    model = network()
    model.fit(X, Y, verbose=0, callbacks=[TerminateOnNaN()])
    assert not model._pydt_training.memory.hooks
    first(model, BAD)
    assert not model._pydt_training.memory.hooks


def test_the_command_says_step_and_layer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    argv = [
        "train",
        "--model",
        "mlp",
        "--dataset",
        "digits",
        "--samples",
        "64",
        "--epochs",
        "2",
        "--learning-rate",
        "1e30",
    ]
    assert main([*argv, "--debug-nan"]) == 1
    told = capsys.readouterr().err
    assert "pydtconv train: batch " in told
    assert "first not finite: layer " in told
