"""The error that ends a command."""

from __future__ import annotations


class CommandError(Exception):
    """What the user can mend: shown as one line, without a traceback.  status: the exit status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status
