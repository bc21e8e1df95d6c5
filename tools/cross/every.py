"""A plug-in of pytest: each EVERY-th test only (variable of the environment, default 20); an emulator is slow."""

from __future__ import annotations

import os
from typing import Any


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    step = int(os.environ.get("EVERY") or 20)
    left = [item for index, item in enumerate(items) if index % step]
    config.hook.pytest_deselected(items=left)
    items[:] = items[::step]
