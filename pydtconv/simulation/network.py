"""The network between ranks: latency, bandwidth, and how fast a rank adds what arrives."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RATES = {"bps": 1 / 8, "B/s": 1.0}
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER = r"(\d+(?:\.\d*)?(?:e-?\d+)?)"
_RATE = rf"{_NUMBER}([kMGT]?)(bps|B/s)"
_PATTERN = re.compile(rf"{_RATE}:{_NUMBER}(ns|us|µs|ms|s)(?::{_RATE})?")


@dataclass(frozen=True)
class Network:
    """alpha: seconds a message; beta: seconds a byte sent; gamma: seconds a byte added to another.

    Each rank sends and receives at the same time, to and from one other, and links are not shared.
    """

    alpha: float
    beta: float
    gamma: float = 1e-10

    @classmethod
    def parse(cls, text: str) -> Network:
        """The network of "BANDWIDTH:LATENCY" or "BANDWIDTH:LATENCY:ADDITION", such as "100Gbps:1.5us:10GB/s".

        Bandwidths are in bps (bits) or B/s (bytes) with k, M, G or T; the rate of additions is 10 GB/s by default.
        Raises ValueError for anything else.
        """
        match = _PATTERN.fullmatch(text.strip())
        expected = f"network: expected BANDWIDTH:LATENCY such as 100Gbps:1.5us or 12.5GB/s:1500ns, got {text!r}"
        if match is None:
            raise ValueError(expected)
        number, scale, unit, latency, time, *addition = match.groups()
        rate = float(number) * _SCALES[scale] * _RATES[unit]
        added = 1e10 if addition[0] is None else float(addition[0]) * _SCALES[addition[1]] * _RATES[addition[2]]
        if not rate or not added:
            raise ValueError(f"{expected}: a bandwidth must be above 0")
        return cls(float(latency) * _TIMES[time], 1 / rate, 1 / added)
