"""Near names, for messages about unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: str, choices: Iterable[str], count: int = 3) -> str:
    """' Did you mean ...?' with the nearest choices, or an empty string where nothing is near."""
    lowered = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(name.lower(), lowered, n=count, cutoff=0.5)
    return f" Did you mean {' or '.join(repr(lowered[key]) for key in found)}?" if found else ""
