"""Which cases of a long list are for `make test-all` alone."""

import pytest


def slow(*values):
    """The values of a case that `make test` leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow)
