"""`tf.distribute`: strategies of one process, which computes with all of its cores; `mpiexec` starts several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from pydtconv import ops


class ReduceOp:
    """How values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class InputContext:
    """What a function that makes a data set is told of the replicas."""

    num_input_pipelines = 1
    input_pipeline_id = 0
    num_replicas_in_sync = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """All of the batch."""
        return global_batch_size


class Strategy:
    """One replica: its values are the values, and its data is all data."""

    num_replicas_in_sync = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Devices, and how they talk to each other, mean nothing here."""

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Models are made in it; nothing changes."""
        yield self

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """fn of the arguments."""
        return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The value; where an axis is given, its sum or mean along that."""
        if axis is None:
            return value
        return (ops.mean if str(reduce_op).upper().endswith("MEAN") else ops.sum)(value, axis=axis)

    def gather(self, value: Any, axis: int) -> Any:
        """The value."""
        return value

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The value of each replica."""
        return (value,)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The data set."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any = None) -> Any:
        """What the function makes."""
        return dataset_fn(InputContext())


class ReplicaContext:
    """What code of a replica knows of itself: it is the only one."""

    num_replicas_in_sync = 1
    replica_id_in_sync_group = 0
    strategy = Strategy()

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The value."""
        return value

    def merge_call(self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """What the function makes of the strategy and the arguments."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))


_default = ReplicaContext.strategy


def get_strategy() -> Strategy:
    """The strategy in force."""
    return _default


def has_strategy() -> bool:
    """Whether a strategy of several replicas is in force."""
    return False


def _several(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "tf.distribute.MultiWorkerMirroredStrategy is not here: start the script by `mpiexec -n 4 pydtconv run` and "
        "call keras.distribution.set_distribution(keras.distribution.DataParallel())"
    )


def _no_tpu(*args: Any, **kwargs: Any) -> NoReturn:
    raise ValueError("tf.distribute: there is no TPU")


def table() -> dict[str, Any]:
    """The names of `tf.distribute`."""
    return {
        "Strategy": Strategy,
        "MirroredStrategy": Strategy,
        "OneDeviceStrategy": Strategy,
        "MultiWorkerMirroredStrategy": _several,
        "TPUStrategy": _no_tpu,
        "ReduceOp": ReduceOp,
        "InputContext": InputContext,
        "ReplicaContext": ReplicaContext,
        "experimental_set_strategy": lambda strategy: None,
        "get_replica_context": ReplicaContext,
        "get_strategy": get_strategy,
        "in_cross_replica_context": lambda: False,
        "has_strategy": has_strategy,
        "HierarchicalCopyAllReduce": lambda *args, **kwargs: None,
        "NcclAllReduce": lambda *args, **kwargs: None,
        "ReductionToOneDevice": lambda *args, **kwargs: None,
    }


def resolvers() -> dict[str, Any]:
    """The names of `tf.distribute.cluster_resolver`."""
    return {"TPUClusterResolver": _no_tpu}
