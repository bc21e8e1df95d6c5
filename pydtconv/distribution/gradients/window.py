"""How many reductions by messages are under way together."""

from __future__ import annotations

#: reductions that are always allowed together: one alone leaves the link idle between its rounds
_LEAST = 2
#: seconds of the link's work beyond which no further one is begun.  Where rounds are long, ranks that have many under
#: way come to be in different ones, in which several send to one receiver and the links of others are idle; where they
#: are short beside the time between two looks into MPI, more are needed to fill it
_SECONDS = 0.5


class Window:
    """Two, or as many as the link carries in some time, by how long those of the step before took.

    seconds: half a second by default; less where those under way take memory.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._allowed = 0.0
        self._count = self._nbytes = 0
        self._begun = self._busy = 0.0
        self._moved = 0

    def begin(self) -> None:
        """Before a step; nothing is under way."""
        if self._busy:
            self._allowed = self._seconds * self._moved / self._busy
        self._busy, self._moved = 0.0, 0

    def allows(self, nbytes: int) -> bool:
        """Whether a reduction of so many bytes may begin now."""
        return self._count < _LEAST or self._nbytes + nbytes <= self._allowed

    def started(self, nbytes: int, now: float) -> None:
        """now: in seconds, of any clock."""
        if not self._count:
            self._begun = now
        self._count += 1
        self._nbytes += nbytes

    def ended(self, nbytes: int, now: float) -> None:
        """One of so many bytes was found to be done."""
        self._count -= 1
        self._nbytes -= nbytes
        self._moved += nbytes
        if not self._count:
            self._busy += now - self._begun
