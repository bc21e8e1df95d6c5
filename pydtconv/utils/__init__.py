"""Helpers with the names of `keras.utils`."""

from pydtconv.utils.random import set_random_seed

__all__ = ["set_random_seed"]
