"""Progress within an epoch where there is no terminal, and progress that goes to a log."""

import errno
import io
import logging
import os
import sys

import numpy as np

import pydtconv as keras
from pydtconv.support import progress


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


def test_training_goes_on_where_there_is_no_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    fitted(epochs=2)


def test_training_goes_on_where_the_disk_of_the_output_is_full(monkeypatch):
    class Full(io.StringIO):
        number = errno.ENOSPC

        def flush(self):
            raise OSError(self.number, os.strerror(self.number))

    monkeypatch.setattr(sys, "stdout", Full())
    fitted(epochs=2)
    monkeypatch.setattr(Full, "number", errno.EPIPE)  # nobody reads it
    fitted(epochs=2)


def test_what_the_output_cannot_encode_is_replaced(monkeypatch):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="größe")])
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    model.summary()
    model.compile("sgd", "mse", metrics=[keras.metrics.MeanAbsoluteError("Maß")])
    model.fit(np.ones((8, 2)), np.ones((8, 1)))
    told = raw.getvalue().decode("ascii")
    assert "gr??e" in told
    assert "Ma?: " in told
