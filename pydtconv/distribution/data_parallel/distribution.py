"""`DataParallel`: every process has the whole model, and computes on a share of every batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import pydtconv
from pydtconv import config, replica
from pydtconv.distribution.data_parallel.worker import Worker
from pydtconv.distribution.mesh import DeviceMesh, list_devices
from pydtconv.distribution.mpi import failure
from pydtconv.distribution.mpi.channels import Channels, channels
from pydtconv.distribution.mpi.launch import LaunchError, World, world
from pydtconv.distribution.options import DEFAULT_BUCKET, Options
from pydtconv.support import random
from pydtconv.support.launcher import launched

_distribution: DataParallel | None = None
_worker: Worker | None = None  # the last one, of which reductions may be under way


class DataParallel:
    """Data parallelism over the processes that `mpiexec` started.

    `batch_size` is that of the global batch; each process computes on its share, and gradients, losses and metrics are
    those of the whole.  Batch normalization takes the statistics of each process's share, unless it is made with
    `synchronized=True`: only then any number of processes gives the result of one.
    device_mesh, devices: all devices, which is the default; each process is one.
    auto_shard_dataset: False where an iterable of batches gives each process batches of its own, whose sum is the
    global batch; arrays are always shared out.
    bucket_size: MiB of gradients that are reduced together, or "tune": the first steps try sizes and keep the fastest;
    another size may round sums over three or more processes in another way, so runs are equal to the bit only where the
    size is said.  overlap: False reduces them after backward, not during it.
    check_gradients: look at each gradient, and end with a FloatingPointError that names parameter and rank of the first
    one that is not finite.
    wire: "bfloat16" halves what is sent; gradients are rounded to 8 bits before and after they are summed in float32.
    shared_memory: processes of one host sum gradients there instead of sending them (in float32); between hosts their
    sums are sent.  False sends the gradients of each process.
    shard: "optimizer": each process updates a part of the variables, keeps the optimizer's slots of it alone, and sends
    it to the others (ZeRO-1; Rajbhandari et al., SC 2020).  "gradients": it keeps the gradients of that part alone, too
    (ZeRO-2).  Optimizers that need whole variables have parts of whole variables.
    """

    def __init__(
        self,
        device_mesh: DeviceMesh | None = None,
        devices: Any = None,
        auto_shard_dataset: bool = True,
        *,
        bucket_size: float | str = DEFAULT_BUCKET,
        overlap: bool = True,
        check_gradients: bool = False,
        wire: str = "float32",
        shared_memory: bool = True,
        shard: str | None = None,
    ) -> None:
        self.options = Options(auto_shard_dataset, bucket_size, overlap, check_gradients, wire, shared_memory, shard)
        if device_mesh is None:
            devices = np.array(list_devices() if devices is None else devices)
            device_mesh = DeviceMesh(devices.shape, ["batch"], devices)
        if not isinstance(device_mesh, DeviceMesh):
            raise ValueError(f"device_mesh: expected a DeviceMesh, got {device_mesh!r}")
        if sorted(device_mesh.devices.ravel()) != sorted(list_devices()):
            raise ValueError(f"devices: expected all of {list_devices()}, got {device_mesh.devices.ravel().tolist()}")
        self.device_mesh = device_mesh
        self.batch_dim_name = device_mesh.axis_names[0]

    @property
    def auto_shard_dataset(self) -> bool:
        return self.options.auto_shard_dataset

    @property
    def num_processes(self) -> int:
        return self.device_mesh.devices.size

    @property
    def num_model_replicas(self) -> int:
        return self.device_mesh.devices.size

    @property
    def data_shard_id(self) -> int:
        """The number of this process."""
        return replica.current().rank

    def worker(self, channels: Channels) -> Worker:
        """The strategy of training in this process."""
        return Worker(channels, self.options)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Makes this distribution active within a `with` block."""
        before = distribution()
        set_distribution(self)
        try:
            yield
        finally:
            set_distribution(before)

    def __repr__(self) -> str:
        return f"<DataParallel over {self.num_processes} processes>"


def initialize(
    job_addresses: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> None:
    """Starts MPI among the processes that `mpiexec` (or `srun`) started.

    Afterwards all draw the same random numbers, each uses its share of the host's cores, and an error in one ends all.
    Raises ValueError where the arguments, which only the launcher can decide, are not what it decided, and LaunchError
    where processes were started that cannot find each other.
    """
    if job_addresses is not None:
        raise ValueError(
            "job_addresses: expected None: mpiexec knows the hosts (mpiexec -hosts a,b ... or a host file)"
        )
    size, rank = (world().size, world().rank) if launched()[0] > 1 else (1, 0)
    for name, given, found in ("num_processes", num_processes, size), ("process_id", process_id, rank):
        if given is not None and given != found:
            raise ValueError(f"{name}: expected {found}, as the launcher has it, got {given}")
    if size > 1:
        _begin(world())


def _begin(here: World) -> None:
    check_versions(here)
    failure.install(here)
    if not config.threads_are_set():
        config.set_num_threads(here.share_of_cores())
    random.set_state(here.comm.bcast(random.get_state()))


def check_versions(here: World) -> None:
    """Raises LaunchError, in all processes, where they run different versions of this package."""
    versions = here.comm.allgather(pydtconv.__version__)
    others = [rank for rank, version in enumerate(versions) if version != versions[0]]
    if others:
        found = ", ".join(f"{versions[rank]} on rank {rank}" for rank in others)
        raise LaunchError(f"pydtconv: expected version {versions[0]}, as rank 0 has, on all ranks, got {found}")


def set_distribution(value: DataParallel | None) -> None:
    """Makes a distribution active for all training that follows; None ends it."""
    global _distribution, _worker
    if value is not None and not isinstance(value, DataParallel):
        raise ValueError(f"set_distribution: expected a DataParallel or None, got {value!r}")
    if _worker is not None and _worker.columns is not None:
        _worker.settle()  # of which this process is to have all
    if value is None or value.num_processes == 1:
        replica.set_current(None)
    else:
        initialize()
        if _worker is not None:
            _worker.settle(state=False)
        _worker = value.worker(channels(world()))
        replica.set_current(_worker)
    _distribution = value


def distribution() -> DataParallel | None:
    """The active distribution, or None."""
    return _distribution
