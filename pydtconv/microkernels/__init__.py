"""Micro-kernels: which there are, which one is active, and how fast they are.

Kernels come from two providers.  The native ones are part of the C library (cext/ukr).  The assembly kernels of BLIS
are found inside the PyPI package `blis`: its extension module carries them as exported symbols, which are looked up by
name and entered into the C library's table.  Kernels are chosen by the features of the CPU and never by BLIS's own
dispatch, which takes CPUs that are younger than it for generic ones.

The choice is made when the first product is computed, per precision: the kernels this CPU can run are tried in the
order of a built-in ranking, and the first one that passes the self-test against the portable kernel is taken.  A
ranking and not a measurement, so that equal runs take equal kernels and give equal bits, on a busy machine too;
`pydtconv doctor` and `measure` show whether it is right on a machine.  `PYDTCONV_UKR=<name>` forces a kernel.
"""

from pydtconv.microkernels.blis import blis_library
from pydtconv.microkernels.choice import select, selected
from pydtconv.microkernels.listing import DTYPES, MicroKernel, available
from pydtconv.microkernels.speed import measure, peak_gflops

__all__ = ["DTYPES", "MicroKernel", "available", "blis_library", "measure", "peak_gflops", "select", "selected"]
