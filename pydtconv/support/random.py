"""Seeds: one call makes a run repeatable; everything that draws random numbers takes its seed from `next_seed`."""

from __future__ import annotations

import contextlib
import random as python_random
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_seeds = python_random.Random()
_own = threading.local()
_MAX_SEED = 2**32 - 1


def set_random_seed(seed: int) -> None:
    """Seeds Python's `random`, NumPy's global generator and pydtconv: two runs that start with it are equal.

    Initializers, dropout, augmentation and shuffling without a `seed` of their own take it from here.  A thread other
    than the main one that calls it draws from a sequence of its own from then on, so that what other threads do at the
    same time changes nothing; all other threads share one.
    Raises ValueError unless seed is an integer from 0 to 2**32 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed <= _MAX_SEED:
        raise ValueError(f"set_random_seed: expected seed to be an integer from 0 to {_MAX_SEED}, got {seed!r}")
    python_random.seed(int(seed))
    np.random.seed(int(seed))  # noqa: NPY002  (scripts use NumPy's global generator)
    if threading.current_thread() is threading.main_thread():
        _seeds.seed(int(seed))
    else:
        _own.seeds = python_random.Random(int(seed))


def next_seed() -> int:
    """A seed, from 0 to 2**32 - 1, for one initializer, random layer or shuffle: another one with each call."""
    return _sequence().getrandbits(32)


@contextlib.contextmanager
def unless_it_fails() -> Iterator[None]:
    """What seeds were drawn within it is as if it had not been where an exception leaves it."""
    sequence = _sequence()
    before = sequence.getstate()
    try:
        yield
    except BaseException:
        sequence.setstate(before)
        raise


def _sequence() -> python_random.Random:
    """What this thread draws seeds from."""
    own: python_random.Random = getattr(_own, "seeds", _seeds)
    return own


def get_state() -> dict[str, Any]:
    """The states of all that `set_random_seed` seeds."""
    return {
        "python": python_random.getstate(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002
        "seeds": _sequence().getstate(),
    }


def set_state(state: Mapping[str, Any]) -> None:
    """Puts back what `get_state` gave."""
    python_random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    _sequence().setstate(state["seeds"])
