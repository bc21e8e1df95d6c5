"""The state that Keras calls a session: the names given so far, and the dtype policy."""

from __future__ import annotations

import gc

from pydtconv.dtype_policies import forget_dtype_policy
from pydtconv.naming import reset_uids


def clear_session(free_memory: bool = True) -> None:
    """Lets automatic names count from the start again, and layers take the default policy.

    free_memory: also runs Python's garbage collector.
    """
    reset_uids()
    forget_dtype_policy()
    if free_memory:
        gc.collect()
