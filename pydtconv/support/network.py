"""The network between ranks: latency, bandwidth, and what a rank's own cores do for it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_RATES = {"bps": 1 / 8, "B/s": 1.0}
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER = r"(\d+(?:\.\d*)?(?:e-?\d+)?)"
_RATE = rf"{_NUMBER}([kMGT]?)(bps|B/s)"
_PATTERN = re.compile(rf"{_RATE}:{_NUMBER}(ns|us|µs|ms|s)(?::{_RATE})?(?::{_RATE})?")
#: of the pattern's groups: bandwidth, latency, addition, processing
_PARTS = ((0, 3), (3, 5), (5, 8), (8, 11))


@dataclass(frozen=True)
class Network:
    """alpha: seconds a message; beta: seconds a byte sent; gamma: seconds a byte added to another.

    delta: seconds of a rank's cores that it takes to send a byte and to receive one.  They are within beta where the
    cores have nothing else to do, and taken from what is computed at the same time.
    ranks_per_host: ranks that share their host's link.
    Each host sends and receives at the same time, to and from one other.
    """

    alpha: float
    beta: float
    gamma: float = 1e-10
    delta: float = 0.0
    ranks_per_host: int = 1

    @classmethod
    def parse(cls, text: str) -> Network:
        """The network of "BANDWIDTH:LATENCY[:ADDITION[:PROCESSING]]", such as "100Gbps:1.5us:10GB/s".

        Rates are in bps (bits) or B/s (bytes) with k, M, G or T: of additions, 10 GB/s by default, and at which the
        cores could send and receive if they did nothing else, by default without a limit.  Raises ValueError for
        anything else.
        """
        match = _PATTERN.fullmatch(text.strip())
        expected = f"network: expected BANDWIDTH:LATENCY such as 100Gbps:1.5us or 12.5GB/s:1500ns, got {text!r}"
        if match is None:
            raise ValueError(expected)
        bandwidth, (latency, time), addition, processing = (match.groups()[i:j] for i, j in _PARTS)
        rate, added = _rate(bandwidth), _rate(addition, 1e10)
        processed = _rate(processing, math.inf)
        if not rate or not added or not processed:
            raise ValueError(f"{expected}: a rate must be above 0")
        return cls(float(latency) * _TIMES[time], 1 / rate, 1 / added, 1 / processed)


def _rate(parts: Sequence[str | None], default: float = 0.0) -> float:
    """Bytes a second of number, scale and unit; the default for none."""
    number, scale, unit = parts
    return default if number is None else float(number) * _SCALES[scale or ""] * _RATES[unit or ""]
