"""Where the time of a training step goes: node by node, beside its floor, as a table and as a time line.

`Profiler` records steps by the hooks of the plan, `Profile` is what it found, `Trace` a time line in Chrome's format.
"""

from pydtconv.profiling.machine import memory_bandwidth
from pydtconv.profiling.profile import Profile, Timing
from pydtconv.profiling.recorder import Profiler
from pydtconv.profiling.trace import Trace

__all__ = ["Profile", "Profiler", "Timing", "Trace", "memory_bandwidth"]
