"""Memory of the host that is pinned, where parts of a device's arena go in between, while kernels run.

Two streams copy, one to the host, one from it, each in the order in which copies were asked for.  Events order them
with the stream of the kernels: a copy begins when all is done that was started before it; what reads its result, or
takes its memory, comes after a wait.  Nothing of it stops the host, and a step with copies is recorded like any other.
"""

from __future__ import annotations

from typing import Any

from pydtconv.devices.accelerator import Accelerator
from pydtconv.kernels.base import Call

#: what `fit(offload=...)` is told for it
HOST = "host"


class PinnedMemory:
    """A pinned array of the host, and what copies to it and from it; it takes the place of a scratch file."""

    folder = HOST
    observer: Any = None

    def __init__(self, device: Accelerator) -> None:
        self.device = device
        self.nbytes = 0
        self._memory: Any = None
        self._streams = device.copy_stream(), device.copy_stream()

    def reserve(self, nbytes: int) -> None:
        """Makes it at least this large; what was bound before must be bound anew then.

        Raises OSError where the host has not so much memory to pin.
        """
        if nbytes > self.nbytes:
            self._memory = None  # the old one is given back first
            self.nbytes = 0
            self._memory = self.device.pinned(nbytes)
            self.nbytes = nbytes

    def bind(self, array: Any, place: int, writes: bool, name: str) -> tuple[Call, Call]:
        """What begins a copy of an array of bytes to a place, or from it, and what has kernels wait for it."""
        device, memory, stream = self.device, self._memory, self._streams[writes]
        begun, done = device.event(), device.event()
        pending = False

        def start() -> None:
            nonlocal pending
            device.record(begun, None)
            device.wait_event(stream, begun)
            device.copy_bytes(array, memory, place, writes, stream)
            device.record(done, stream)
            pending = True

        def wait() -> None:
            nonlocal pending
            if pending:
                device.wait_event(None, done)
                pending = False

        return start, wait

    def rates(self) -> tuple[None, None]:
        """Nothing is measured while steps run."""
        return None, None

    def close(self) -> None:
        """Gives the memory back, when all copies are done."""
        self.device.synchronize()
        self._memory, self.nbytes = None, 0


def speeds(device: Accelerator, nbytes: int = 64 << 20) -> tuple[float, float]:
    """Bytes per second to the host and from it, as the device's events tell."""
    memory, array = PinnedMemory(device), device.arena(nbytes)
    memory.reserve(nbytes)
    found = []
    for writes in (True, False):
        start, wait = memory.bind(array, 0, writes, "measure")

        def both(start: Call = start, wait: Call = wait) -> None:
            start()
            wait()

        device.seconds_of(both)
        found.append(nbytes / max(device.seconds_of(both), 1e-9))
    memory.close()
    return found[0], found[1]
