"""Progress within an epoch where there is no terminal, and progress that goes to a log."""

import logging

import numpy as np

import pydtconv as keras
from pydtconv.utils import progress


def fitted(**more):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 2)), np.ones((8, 1)), batch_size=2, **more)


def test_lines_within_an_epoch(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    monkeypatch.setattr(progress, "OTHER_LINES", 0.0)
    fitted()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" - ")[0] for line in lines] == ["1/4", "2/4", "3/4", "4/4", "4/4"]
    assert "left" in lines[0]
    assert "loss: " in lines[0]
    fitted(verbose=2)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_log_instead_of_standard_output(capsys):
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage().split(" - ")[0])
    logger = logging.getLogger("pydtconv")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    keras.utils.disable_interactive_logging()
    try:
        fitted(epochs=2)
    finally:
        keras.utils.enable_interactive_logging()
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert not capsys.readouterr().out
    assert lines == ["Epoch 1/2", "4/4", "Epoch 2/2", "4/4"]
