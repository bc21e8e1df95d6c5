"""Windows of short-time Fourier transforms: values by which a part of a signal is multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np


def window_of(window: Any, length: int, periodic: bool) -> np.ndarray | None:
    """The values of a window: "hann", "hamming", a name that `scipy.signal.get_window` knows, values, or None.

    periodic: of a window by name, one that goes on where it ends, instead of a symmetric one.  Raises ValueError.
    """
    if window is None:
        return None
    if not isinstance(window, str):
        values = np.asarray(window, np.float64)
        if values.shape != (length,):
            raise ValueError(f"window: expected {length} values, got shape {values.shape}")
        return values
    share = {"hann": 0.5, "hamming": 0.54}.get(window)
    if share is not None:
        turns = np.arange(length) / max(1, length if periodic else length - 1)
        return share - (1 - share) * np.cos(2 * np.pi * turns) if length > 1 else np.ones(1)
    try:
        from scipy.signal import get_window
    except ImportError:
        raise ValueError(f"window: expected 'hann', 'hamming', values or None without SciPy, got {window!r}") from None
    return np.asarray(get_window(window, length, periodic), np.float64)


def written(window: Any) -> Any:
    """A window as a configuration has it: its name, a list of its values, or None."""
    return window if window is None or isinstance(window, str) else np.asarray(window).tolist()
