"""A plug-in of pytest: each EVERY-th test only (variable of the environment, default 20); an emulator is slow.

INTERPRETER is what tests find in sys.executable: Python in the emulator, which the system may not start by itself.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    sys.executable = os.environ.get("INTERPRETER") or sys.executable
    step = int(os.environ.get("EVERY") or 20)
    left = [item for index, item in enumerate(items) if index % step]
    config.hook.pytest_deselected(items=left)
    items[:] = items[::step]
