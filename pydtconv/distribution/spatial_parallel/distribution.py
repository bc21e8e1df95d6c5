"""`SpatialParallel`: images are cut over the processes, each of which computes on its part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv.distribution.data_parallel.distribution import DataParallel, distribution
from pydtconv.distribution.data_parallel.worker import Worker
from pydtconv.distribution.mesh import DeviceMesh, is_positive
from pydtconv.distribution.mpi.channels import Channels
from pydtconv.distribution.mpi.launch import world
from pydtconv.distribution.spatial_parallel.worker import SpatialWorker
from pydtconv.graph.spatial.partition import Partition
from pydtconv.support.network import Network


class SpatialParallel(DataParallel):
    """Images cut along "depth", "height" and "width", samples shared out along "batch": the axes of `device_mesh`.

    `batch_size` is that of the global batch.  Losses, metrics, weights and predictions are those of one process, and so
    are the numbers of random operators; batch normalization takes its statistics over all processes.
    overlap: False waits for what neighbours send before anything is computed that reads it (and reduces gradients after
    backward).
    network: between the processes, "BANDWIDTH:LATENCY" such as "1Gbps:100us": where a message takes longer than it does
    to compute some rows twice, convolutions that follow each other share one wider halo.
    gather_predictions: False leaves predictions that are cut as they are: `predict` returns this process's part.
    columns: names of Dense layers, or patterns such as "fc*": the processes that share samples share the columns of
    their kernels (tensor parallelism; Shoeybi et al., 2019).  Each has its columns alone, with their gradients and the
    optimizer's slots; for whoever reads these variables they are whole.  Along a mesh axis "model" columns are all that
    is shared.  Units must be a multiple of the processes; optimizers must work element by element.
    The other options are those of `DataParallel`.

    Raises ValueError where the mesh has an axis of another name, or not the processes that were started, and for what
    is no network.
    """

    def __init__(
        self,
        device_mesh: DeviceMesh,
        auto_shard_dataset: bool = True,
        *,
        gather_predictions: bool = True,
        network: str | None = None,
        columns: Sequence[str] = (),
        **options: Any,
    ) -> None:
        if not isinstance(device_mesh, DeviceMesh):
            raise ValueError(f"device_mesh: expected a DeviceMesh, got {device_mesh!r}")
        super().__init__(device_mesh, None, auto_shard_dataset, **options)
        if not gather_predictions and "batch" in device_mesh.axis_names:
            raise ValueError("gather_predictions: expected True on a mesh with a 'batch' axis, got False")
        if not isinstance(gather_predictions, bool):
            raise ValueError(f"gather_predictions: expected True or False, got {gather_predictions!r}")
        named = not isinstance(columns, str) and isinstance(columns, Sequence)
        if not named or not all(isinstance(name, str) and name for name in columns):
            raise ValueError(f"columns: expected a sequence of names of Dense layers, got {columns!r}")
        if columns and self.options.shard is not None:
            raise ValueError(f"shard: expected None with columns, got {self.options.shard!r}")
        self.gather_predictions = gather_predictions
        self.batch_dim_name = "batch"
        ranks = tuple(int(device.partition(":")[2]) for device in device_mesh.devices.ravel().tolist())
        mine = world().rank if len(ranks) > 1 else 0
        names, overlaps = tuple(device_mesh.axis_names), self.options.overlap
        link = None if network is None else Network.parse(network)
        self.partition = Partition(names, device_mesh.shape, ranks, mine, overlaps, link, tuple(columns))

    @property
    def num_model_replicas(self) -> int:
        return self.partition.extent("batch")

    @property
    def data_shard_id(self) -> int:
        """The number of this process's share of each batch."""
        return self.partition.coordinate("batch")

    def worker(self, channels: Channels) -> Worker:
        return SpatialWorker(channels, self.options, self.partition, self.gather_predictions)

    def __repr__(self) -> str:
        return f"<SpatialParallel over {self.partition}>"


def window(shape: Sequence[int]) -> tuple[slice, ...]:
    """This process's part of an image: a slice of each of its axes, depth, height and width or the last of them.

    shape: extents of these axes in the whole image, without samples and channels.  Without spatial parallelism: all.
    Raises ValueError where the mesh has an axis that the image has not, or that is longer than the image's, and for
    extents that are no positive integers.
    """
    if isinstance(shape, str) or not isinstance(shape, Sequence) or not all(is_positive(extent) for extent in shape):
        raise ValueError(f"window: expected the extents of an image, positive integers, got {shape!r}")
    active = distribution()
    if isinstance(active, SpatialParallel):
        return active.partition.window(shape)
    return tuple(slice(0, extent) for extent in shape)
