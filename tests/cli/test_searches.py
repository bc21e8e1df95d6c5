"""The search for a learning rate, on losses that are given."""

import numpy as np
import pytest

from pydtconv.cli import searches
from pydtconv.cli.errors import CommandError
from pydtconv.files import plotting

FALLING = [2.3, 2.3, 2.3, 2.2, 1.5, 0.8, 0.7, 0.7, 0.7, 0.7]


@pytest.fixture
def found(monkeypatch, capsys):
    """A function of losses: the losses that are drawn, and what is said."""

    def search(losses):
        drawn = []
        rates = np.geomspace(1e-6, 1, len(losses))
        monkeypatch.setattr(searches, "losses_over_rates", lambda *args: (rates, np.array(losses)))
        monkeypatch.setattr(plotting, "plot_learning_rates", lambda rates, losses, *args: drawn.extend(losses))
        searches.find_learning_rate(None, None, 1, "rates.png")
        return drawn, capsys.readouterr().out.splitlines()[0]

    return search


@pytest.mark.parametrize("ends", [[], [np.nan], [np.inf], [np.nan, np.nan], [np.inf, 0.1, np.nan]], ids=str)
def test_steps_that_diverged_are_not_the_best(ends, found):
    at = np.geomspace(1e-6, 1, len(FALLING + ends))[4]
    assert found(FALLING + ends) == (FALLING, f"learning rate: {at:.1e}, where the loss falls fastest")


@pytest.mark.parametrize("ends", [[], [np.nan]], ids=str)
def test_one_step_is_enough(ends, found):
    assert found([2.0, *ends]) == ([2.0], "learning rate: 1.0e-06, where the loss falls fastest")


def test_losses_that_are_all_not_finite_are_an_error(found):
    with pytest.raises(CommandError, match=r"--find-learning-rate: the loss is nan at the smallest rate, 1\.0e-06"):
        found([np.nan])
