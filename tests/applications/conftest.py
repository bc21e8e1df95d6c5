"""What tests of large networks share."""

import numpy as np
import pytest

from pydtconv.initializers.fans import VarianceScaling


@pytest.fixture
def undrawn(monkeypatch):
    """Filters that would be drawn at random are zeros, which take no memory until somebody writes to them.

    For tests that only count: a network for 1000 classes takes 0.6 GB, its numbers twice that while they are drawn.
    """
    monkeypatch.setattr(VarianceScaling, "__call__", lambda self, shape, dtype=None: np.zeros(shape, dtype))
