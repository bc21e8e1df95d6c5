"""Namespaces in which Keras has the functions of `ops` once more, by what they do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pydtconv.suggest import refusal


def part_of_ops(module: str, names: Sequence[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of the module: names of `pydtconv.ops`, and what to use for others."""
    refuse = refusal(module, names)

    def __getattr__(name: str) -> Any:
        return getattr(sys.modules["pydtconv.ops"], name) if name in names else refuse(name)

    __getattr__.refuses = True  # type: ignore[attr-defined]
    return __getattr__, lambda: sorted(names)
