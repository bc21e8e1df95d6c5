"""Training on several processes, with the names of `keras.distribution`, over MPI (the `mpi` extra).

Under `mpiexec -n P`, `pydtconv train`, `run` and `evaluate` are data-parallel by themselves; elsewhere
`set_distribution(DataParallel())` makes them so.
"""

from pydtconv.distribution.data_parallel import DataParallel, distribution, initialize, set_distribution
from pydtconv.distribution.launch import LaunchError
from pydtconv.distribution.mesh import DeviceMesh, get_device_count, list_devices

__all__ = [
    "DataParallel",
    "DeviceMesh",
    "LaunchError",
    "distribution",
    "get_device_count",
    "initialize",
    "list_devices",
    "set_distribution",
]
