"""Near names for a wrong one, for errors that help."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names most like `name`, best first, whatever their case; none when nothing is like it."""
    by_lower: dict[str, str] = {}
    for candidate in names:
        by_lower.setdefault(candidate.lower(), candidate)
    matches = difflib.get_close_matches(name.lower(), by_lower, count, cutoff=0.55)
    return [by_lower[match] for match in matches]


def near(name: str, choices: Iterable[str]) -> str:
    """' Did you mean ...?' with the nearest choices, as a sentence of its own; empty where nothing is near."""
    found = nearest(name, choices)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ "; did you mean x or y?", or "" when nothing is like the name."""
    matches = nearest(name, names)
    return f"; did you mean {' or '.join(matches)}?" if matches else ""
