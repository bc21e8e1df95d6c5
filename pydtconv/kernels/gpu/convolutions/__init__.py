"""Algorithms of convolution on GPUs, by name.

table: which there are, and which one a pass takes.  im2col: serves every problem.  fourier: in the
Fourier domain, strides of 1; strategies: its points, tiles and products; spectra: where its transforms lie, and which
of them passes leave for one another (sharing).
"""

from pydtconv import hooks
from pydtconv.kernels.gpu.convolutions import table
from pydtconv.kernels.gpu.convolutions.sharing import kept
from pydtconv.kernels.gpu.convolutions.table import TABLE, algorithms, candidates, choose, explain, family

__all__ = ["TABLE", "algorithms", "candidates", "choose", "explain", "family", "kept"]

hooks.device_algorithms.fill(lambda: table)
