"""Algorithms of convolution on GPUs, by name.

table: which there are, and which one a pass takes.  im2col: serves every problem.  fourier: in the
Fourier domain, strides of 1.
"""

from pydtconv.kernels.gpu.convolutions.table import TABLE, algorithms, choose, explain

__all__ = ["TABLE", "algorithms", "choose", "explain"]
