"""The search for the largest batch."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.cli import main
from pydtconv.engine import room
from pydtconv.engine.largest_batch import largest_batch
from pydtconv.graph import MemoryLimitError


@pytest.mark.parametrize("most", [1, 2, 3, 17, 31, 32, 100, 1000])
def test_it_is_exact_below_32_and_above_to_a_sixteenth(most):
    def plan(size):
        if size > most:
            raise MemoryLimitError(most, size)

    found = largest_batch(plan)
    assert most * 15 / 16 <= found <= most
    assert found == most or most >= 32


def test_one_sample_that_is_too_much_is_an_error():
    def plan(size):
        raise MemoryLimitError(1, 2)

    with pytest.raises(MemoryLimitError):
        largest_batch(plan)


def network():
    model = keras.Sequential([keras.Input((16, 16, 3)), layers.Conv2D(8, 3), layers.Flatten(), layers.Dense(3)])
    model.compile("sgd", "mse")
    return model


def test_the_batch_of_a_model_fits_and_twice_as_many_do_not(monkeypatch):
    model = network()
    limit = model.plan(20).peak_bytes
    found = model.largest_batch(limit)
    assert found >= 20
    assert model.plan(found, memory_limit=limit).peak_bytes <= limit
    with pytest.raises(MemoryLimitError):
        model.plan(found + 1, memory_limit=limit)
    assert model.largest_batch(f"{limit}B") == found
    assert model.largest_batch(limit, offload=True) >= found
    weights = sum(variable.value.nbytes for variable in model.variables)
    monkeypatch.setattr(room, "memory_available", lambda: limit - weights)
    assert model.largest_batch() == found
    with pytest.raises(ValueError, match="memory_limit: expected bytes"):
        model.largest_batch("much")


def test_a_step_that_takes_more_than_there_is_is_warned_of(monkeypatch, capsys):
    model = network()
    monkeypatch.setattr(room, "_SMALL", 0)
    monkeypatch.setattr(room, "memory_available", lambda: 1 << 16)
    x, y = np.zeros((64, 16, 16, 3), "float32"), np.zeros((64, 3), "float32")
    with pytest.warns(UserWarning, match=r"a step takes \d+ MiB, more than .* memory_limit=.*--memory-limit"):
        model.fit(x, y, batch_size=64, verbose=0)
    assert main(["plan", "--model", "mlp"]) == 0
    assert "memory_limit=" in capsys.readouterr().out
    monkeypatch.setattr(room, "memory_available", lambda: 1 << 34)
    model.fit(x[:32], y[:32], verbose=0)
