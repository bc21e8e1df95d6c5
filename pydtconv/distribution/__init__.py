"""Training on several processes, with the names of `keras.distribution`, over MPI (the `mpi` extra).

Under `mpiexec -n P`, `pydtconv train`, `run` and `evaluate` are data-parallel by themselves; elsewhere
`set_distribution(DataParallel())` makes them so.

mpi/            processes, messages between them, and what happens when one fails
gradients/      sums of gradients while backward runs, by messages or in shared memory
data_parallel/  `DataParallel`, and the strategy of training that it puts in place
spatial_parallel/  `SpatialParallel`: images themselves are cut
mesh.py         devices; options.py: what `DataParallel` is given; report.py: what `pydtconv doctor` says of ranks
"""

from pydtconv.distribution.data_parallel import DataParallel, distribution, initialize, set_distribution
from pydtconv.distribution.mesh import DeviceMesh, get_device_count, list_devices
from pydtconv.distribution.mpi.launch import LaunchError
from pydtconv.distribution.spatial_parallel import SpatialParallel, window

__all__ = [
    "DataParallel",
    "DeviceMesh",
    "LaunchError",
    "SpatialParallel",
    "distribution",
    "get_device_count",
    "initialize",
    "list_devices",
    "set_distribution",
    "window",
]
