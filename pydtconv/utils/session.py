"""The state that Keras calls a session: here, the names given so far."""

from __future__ import annotations

import gc

from pydtconv.naming import reset_uids


def clear_session(free_memory: bool = True) -> None:
    """Lets automatic names count from the start again; `free_memory` also runs Python's garbage collector."""
    reset_uids()
    if free_memory:
        gc.collect()
