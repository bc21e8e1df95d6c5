"""Configs of models with values changed, swapped and nested, as `.keras` files.

A trial passes where the model is loaded, and runs, or the file is refused by an error that names it: without another
file that is read (audit events), within the worker's memory.
"""

from __future__ import annotations

import atexit
import copy
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz import trials
from tests.serialization import trying
from tests.serialization.members import Member, members

#: trials of a seed
TRIALS = 200
NUMBERS = (0, -1, 1, 2, 3, 0.5, 1e30, float("nan"), float("inf"), 10**6, 2**31 - 1, 2**31, 2**62, 2**63, 2**64, 10**30)
OTHERS: tuple[Any, ...] = (
    "",
    "abc",
    "object",
    "float64",
    "bfloat16",
    "/etc/passwd",
    "/dev/zero",
    None,
    True,
    [],
    {},
    [[]],
)
_members: list[Member] = []
_folder: Path
_read: list[str] = []
_watched = False


def prepare() -> None:
    """Tries each kind once, so that all that is imported later has been imported."""
    global _folder
    _folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    _members.extend(members())
    trying.without_weights()
    for member in _members:
        trying.write(_folder / "a.keras", json.dumps(member.model()))
        trying.outcome(_folder / "a.keras")
    sys.addaudithook(_audit)


def run(seed: int) -> None:
    if not _members:
        prepare()
    draw = random.Random(seed)
    for _ in range(TRIALS):
        member = draw.choice(_members)
        text = json.dumps(changed(draw, member))
        path = _folder / "a.keras"
        trying.write(path, text)
        trials.keep(f"{member.id}.json", text.encode())
        trials.count(member.kind, _outcome(path))


def changed(draw: random.Random, member: Member) -> Any:
    """The config of a model that holds the member, after some changes."""
    given, arguments = {}, member.arguments()
    for _ in range(draw.randint(0, 2) if arguments else 0):
        given[draw.choice(arguments)] = draw.choice([draw.choice(NUMBERS), draw.choice(OTHERS)])
    model = copy.deepcopy(member.model(**given))
    for _ in range(draw.randint(0 if given else 1, 2)):
        places = list(_places(model))
        if not places:
            break
        holder, key = draw.choice(places)
        other = draw.choice(_members)
        values = [draw.choice(NUMBERS), draw.choice(OTHERS), other.data(), other.name, [draw.choice(NUMBERS)] * 3]
        holder[key] = copy.deepcopy(draw.choice([*values[:2], *values]))
    return model


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield data, key
        yield from _places(value)


def _outcome(path: Path) -> str:
    global _watched
    _read.clear()
    _watched = True
    try:
        found = trying.outcome(path)
    finally:
        _watched = False
    if _read:
        raise AssertionError(f"the config led to {_read}")
    if found not in trying.GOOD and (not found.endswith("when it is run") or found.startswith("takes")):
        raise AssertionError(found)
    return found.partition(" ")[2] if found.endswith("when it is run") else found


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched and event == "open" and str(arguments[0]).startswith(("/etc/passwd", "/dev/zero")):
        _read.append(f"{event} {arguments!r:.200}")
