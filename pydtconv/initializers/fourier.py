"""Initializers of short-time Fourier transforms that are convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import name_of
from pydtconv.initializers.initializer import Initializer, Shape
from pydtconv.support.windows import window_of, written

SIDES, SCALINGS = ("real", "imag"), ("density", "spectrum", None)


class STFT(Initializer):
    """Filters (frame_length, 1, fft_length // 2 + 1) whose convolution is a short-time Fourier transform.

    side: "real" or "imag".  window: its name or values, None for none; periodic: of a window by name.  scaling:
    "density" divides by the window's 2-norm, "spectrum" by the sum of its absolute values.
    """

    def __init__(
        self, side: str = "real", window: Any = "hann", scaling: str | None = "density", periodic: bool = False
    ) -> None:
        if side not in SIDES:
            raise ValueError(f"STFT initializer: side: expected 'real' or 'imag', got {side!r}")
        if scaling not in SCALINGS:
            raise ValueError(f"STFT initializer: scaling: expected 'density', 'spectrum' or None, got {scaling!r}")
        if isinstance(window, str):
            window_of(window, 1, periodic)
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, bool(periodic)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        if len(shape) != 3 or shape[1] != 1:
            raise ValueError(
                f"STFT initializer: expected a shape (frame_length, 1, fft_length // 2 + 1), got {tuple(shape)}"
            )
        frame, _, bins = shape
        angles = -2 * np.pi * np.arange(frame)[:, None, None] * np.arange(bins) / max(1, 2 * (bins - 1))
        filters = np.cos(angles) if self.side == "real" else np.sin(angles)
        window = window_of(self.window, frame, self.periodic)
        if window is not None:
            total = {"density": np.sqrt(np.square(window).sum()), "spectrum": np.abs(window).sum(), None: 1.0}
            filters *= window[:, None, None] / total[self.scaling]
        return filters.astype(name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        return {
            "side": self.side,
            "window": written(self.window),
            "periodic": self.periodic,
            "scaling": self.scaling,
        }
