"""NVIDIA's GPUs, through CuPy: memory, streams, kernels of cext/cuda by NVRTC, products by cuBLAS, CUDA graphs.

CuPy is imported when a GPU is first asked for.
"""

from pydtconv.devices.gpu.availability import count, missing
from pydtconv.devices.gpu.device import GPU

__all__ = ["GPU", "count", "missing"]
