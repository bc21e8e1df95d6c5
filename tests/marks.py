"""Marks of tests: what `make test` leaves out, and what an environment variable takes away."""

import os

import pytest


def slow(*values):
    """The values of a case that `make test` leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow)


#: of tests of the choice of micro-kernels, which PYDTCONV_UKR takes away
chosen_freely = pytest.mark.skipif("PYDTCONV_UKR" in os.environ, reason="PYDTCONV_UKR says which micro-kernel is used")
