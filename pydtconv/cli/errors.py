"""The errors that end a command."""

from __future__ import annotations


class CommandError(Exception):
    """What the user can mend: shown as one line, without a traceback.  status: the exit status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


class UsageError(SystemExit):
    """Arguments that cannot be understood; the process ends with status 2.  text: what the user is to read."""

    def __init__(self, text: str) -> None:
        super().__init__(2)
        self.text = text
