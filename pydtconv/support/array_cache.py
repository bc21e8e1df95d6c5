"""Arrays that are made once for what they depend on, as long as there is room for them."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np


class KeptArrays:
    """A function's arrays by its arguments; those that were not used for longest go first.  For the whole process.

    make: gives an array, not to be altered.  nbytes: that all of them may take; one that is larger is made each time.
    """

    def __init__(self, make: Callable[..., np.ndarray], nbytes: int = 64 << 20) -> None:
        self._make = make
        self._most = nbytes
        self._held = 0
        self._arrays: OrderedDict[Hashable, np.ndarray] = OrderedDict()
        self._renew_lock()
        os.register_at_fork(after_in_child=self._renew_lock)  # another thread may have had it

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, *key: Hashable) -> np.ndarray:
        """make(*key)"""
        with self._lock:
            found = self._arrays.get(key)
            if found is not None:
                self._arrays.move_to_end(key)
                return found
        made = self._make(*key)
        with self._lock:
            if made.nbytes <= self._most and key not in self._arrays:
                self._arrays[key] = made
                self._held += made.nbytes
                while self._held > self._most:
                    self._held -= self._arrays.popitem(last=False)[1].nbytes
        return made
