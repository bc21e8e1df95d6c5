"""Devices: where a plan's memory lies, and how kernels are started there.

device: what a plan asks of a device.  cpu: this machine's processor and NumPy arrays.  accelerator: what the two others
share, which run the kernels of cext/cuda: gpu, NVIDIA's GPUs through CuPy, and host, which runs the same kernels as C++
for tests.  launcher: kernels bound to arrays.  names: what a device is called.
"""

from pydtconv.devices.device import Device, DeviceError
from pydtconv.devices.names import get, of

__all__ = ["Device", "DeviceError", "get", "of"]
