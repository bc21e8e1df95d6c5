"""Algorithms of convolution on GPUs, by name.

choice: which there are, and which one a pass takes.  convgemm: products that read images in place.  im2col: columns
around the device's products; serves every problem.  fourier: in the Fourier domain, strides of 1; strategies: its
points, tiles and products; spectra: where its transforms lie, and which of them passes leave for one another (sharing).
"""

from pydtconv import hooks
from pydtconv.kernels.gpu.convolutions import choice
from pydtconv.kernels.gpu.convolutions.choice import TABLE, algorithms, candidates, choose, explain, family
from pydtconv.kernels.gpu.convolutions.sharing import kept

__all__ = ["TABLE", "algorithms", "candidates", "choose", "explain", "family", "kept"]

hooks.device_algorithms.fill(lambda: choice)
