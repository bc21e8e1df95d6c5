"""What rooms tell of their trials: counts by kind and outcome, and the input that is being tried."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

counts: Counter[tuple[str, str]] = Counter()
#: damaged files of a seed of the room files
files = 100
_corpus: Path | None = None


def begin(corpus: Path) -> None:
    """From here on inputs are kept in this folder."""
    global _corpus
    _corpus = corpus.resolve()
    corpus.mkdir(parents=True, exist_ok=True)


def count(kind: str, outcome: str) -> None:
    counts[kind, outcome] += 1


def keep(name: str, data: bytes) -> None:
    """Notes the input of the trial that begins now."""
    if _corpus is not None:
        (_corpus / "current").write_bytes(name.encode() + b"\n" + data)


def failed(seed: int) -> Path | None:
    """Gives the input of the trial that failed a name of its own; returns its path."""
    if _corpus is None or not (_corpus / "current").exists():
        return None
    name, _, data = (_corpus / "current").read_bytes().partition(b"\n")
    digest = hashlib.sha256(data).hexdigest()[:12]
    path = _corpus / f"failed-{seed}-{digest}-{name.decode()}"
    path.write_bytes(data)
    return path
