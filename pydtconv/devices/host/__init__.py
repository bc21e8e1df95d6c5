"""The device "host": kernels for GPUs run as C++ on this machine, for tests; slow, and checked at every access."""

from pydtconv.devices.host.array import HostArray
from pydtconv.devices.host.device import Host

__all__ = ["Host", "HostArray"]
