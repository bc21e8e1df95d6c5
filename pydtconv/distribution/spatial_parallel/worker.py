"""The strategy of training in a process that computes on a part of every image of its share of the batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pydtconv import tree
from pydtconv.distribution.data_parallel.joint_results import not_by_sample
from pydtconv.distribution.data_parallel.shared_step import SharedStep
from pydtconv.distribution.data_parallel.worker import Worker
from pydtconv.distribution.gradients.accumulation import Accumulation
from pydtconv.distribution.gradients.host_state import HostState, unshare
from pydtconv.distribution.gradients.reduced_updates import ReducedUpdates
from pydtconv.distribution.gradients.shared_memory import NotSharedError, on_one_host
from pydtconv.distribution.mpi.channels import Channels
from pydtconv.distribution.options import Options
from pydtconv.distribution.spatial_parallel.exchanger import Exchanger
from pydtconv.graph import Memory
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.columns import Columns
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.schedule.halos import ExchangeStart
from pydtconv.graph.spatial.cutting import Placement
from pydtconv.graph.spatial.partition import Partition
from pydtconv.metrics import Mean
from pydtconv.optimizers import Optimizer
from pydtconv.trainers.data_adapters.arrays import ArrayData, Batch
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.trainers.step_functions import Results, StepFunction
from pydtconv.trainers.training import Training


class SpatialWorker(Worker):
    """Processes with one "batch" coordinate share samples; the others of a mesh's axes say which part of an image.

    Each has the loss, and the metrics, of its part; where images have been gathered, all of a group have the same, and
    one of them counts.
    """

    def __init__(self, channels: Channels, options: Options, partition: Partition, gathers: bool) -> None:
        super().__init__(channels, options)
        self.partition = partition
        self.gathers = gathers
        far = len({self.world.hosts[rank] for rank in partition.group}) > 1
        self.exchanger = Exchanger(channels.halos, partition.group, carries_on=far)
        if partition.columns:
            self._share_columns()
        flat = options.check_gradients or options.shard or partition.columns
        shares = options.shared_memory and options.wire == "float32" and not flat
        self._share(shares and self.size > 1 and on_one_host(channels.small))
        self._states: WeakKeyDictionary[ParameterStore, HostState] = WeakKeyDictionary()
        self._step: StepFunction | None = None
        self._cut: list[Variable] = []  # the variables and slots with columns that the last step has trained
        self._windowed: set[str] = set()  # the kinds of runs whose data has this process's part of images alone

    def _share(self, shares: bool) -> None:
        """Whether plans have one copy of weights and slots for all processes, or each its own, and flat gradients."""
        self.sharers = self.size if shares else 1
        self.reads_gradients = not shares

    def _share_columns(self) -> None:
        """Those that share samples have all columns together; those with the same columns have other samples."""
        groups = self.partition.groups
        self.group = group = self.channels.of_parts(groups)
        self.accumulation = Accumulation(self.large, self.channels.of_parts(list(zip(*groups, strict=True))))
        self.columns = Columns(self.partition.index, len(groups[0]), group.allgather)

    def settle(self, state: bool = True, columns: bool | None = None) -> None:
        super().settle(state)
        for variable in self._cut if (state if columns is None else columns) else ():
            if variable.cut is not None:
                variable.cut.keep(variable)

    def updater(self, optimizer: Any) -> Any:
        return ReducedUpdates(optimizer, self.large)

    # --- data ------------------------------------------------------------------------------------------------------
    def share(self, count: int) -> slice:
        """Contiguous, in the order of the mesh's "batch" axis."""
        shares, mine = self.partition.extent("batch"), self.partition.coordinate("batch")
        each, more = divmod(count, shares)
        start = mine * each + min(mine, more)
        return slice(start, start + each + (mine < more))

    @property
    def _leads(self) -> bool:
        return self.rank in self._leaders()

    def _leaders(self) -> list[int]:
        """The first rank of each group, by its "batch" coordinate."""
        first = {self.partition.coordinate("batch", rank): rank for rank in reversed(self._by_place())}
        return [first[i] for i in range(self.partition.extent("batch"))]

    def _by_place(self) -> list[int]:
        return sorted(self.partition.ranks, key=self.partition.place)

    def counted(self, size: int | None, whole: int | None) -> tuple[int, int] | None:
        own = np.array([-1 if size is None else size, -1 if whole is None else whole])
        sizes, wholes = self.small.allgather(own, "the sizes of the shares of a batch").T
        if (sizes < 0).all():
            return None
        batches = np.array([self.partition.coordinate("batch", rank) for rank in range(self.size)])
        for batch in range(self.partition.extent("batch")):
            found = sizes[batches == batch]
            if (found != found[0]).any():
                told = ", ".join("none" if n < 0 else str(n) for n in found)
                raise RuntimeError(f"the batch: expected the same samples on ranks that share images, got {told}")
        if wholes.max() >= 0 and (wholes != wholes[0]).any():
            told = ", ".join("none" if n < 0 else str(n) for n in wholes)
            raise RuntimeError(f"the batch: expected the same number of samples from the data of all ranks, got {told}")
        shares = np.maximum(sizes[self._leaders()], 0)
        return int(shares[: self.partition.coordinate("batch")].sum()), int(shares.sum())

    def prepare(self, training: Training, kind: str, data: ArrayData | StreamData, single: bool = False) -> None:
        self._windowed.discard(kind)
        if getattr(getattr(data, "source", None), "windowed", False):
            self._windowed.add(kind)
        super().prepare(training, kind, data, single)

    def _check_windows(self) -> None:
        """Raises ValueError where the step reads more of an image than data that is cut like it has."""
        if not self.partition.cut:
            return
        if self._step is None:
            raise NotImplementedError(
                "a train_step, test_step or predict_step of the model's class expects data with whole images, got "
                "windows of them: leave windows to the step of fit"
            )
        spatial = self._placements[self._step.traced.x[0]].shape[1:-1]
        window = self.partition.window(spatial)
        for name in filter(None, (*self._step.traced.x, *self._step.traced.y)):
            placed = self._placements[name]
            axes = placed.slices[1 : len(spatial) + 1]
            if placed.shape[1 : len(spatial) + 1] == spatial and axes != window:
                raise ValueError(
                    f"{name}: expected a model that reads {window} of the images, as `distribution.window` says, got "
                    f"one that reads {axes}: its first operator needs whole images, which windowed data has not"
                )

    def _sharing(self, training: Training, kind: str, batch: Batch) -> Any:
        if self.columns is not None:
            raise NotImplementedError(f"columns: expected the step of fit, got a {kind}_step of the model's class")
        return super()._sharing(training, kind, batch)

    # --- a step ----------------------------------------------------------------------------------------------------
    @contextmanager
    def running(
        self, training: Training, kind: str, batch: Batch, step: StepFunction | None = None
    ) -> Iterator[SharedStep | None]:
        training.memory.state.exchanger = self.exchanger
        self._step = step
        if kind in self._windowed:
            self._check_windows()
        overlaps = step is None or any(isinstance(each, ExchangeStart) for each in step.executor.plan.steps)
        beside = self.exchanger.going_on() if overlaps else nullcontext()
        with super().running(training, kind, batch, step) as shared, beside:
            yield shared

    def _replicate(self, training: Training) -> None:
        super()._replicate(training)
        store, optimizer = training.memory.store, training.optimizer
        state = None if store is None else self._states.get(store)
        lost = state is None or store is None or optimizer is None or not state.holds(store, optimizer)
        if self.any(lost, "whether all ranks share their weights") and store is not None:
            self._states.pop(store, None)

    @contextmanager
    def _learning(self, training: Training, batch: Batch, step: StepFunction) -> Iterator[None]:
        memory, optimizer = training.memory, training.optimizer
        store, updater = memory.store, step.executor.updater
        assert store is not None
        assert optimizer is not None
        cut, slots = step.executor.plan.graph.cut_variables, optimizer._pydt_slots
        self._cut = [*cut, *(slot for each in cut if each in slots for slot in slots.of(each).values())]
        for variable in self._cut:
            if variable.cut is not None:
                variable.cut.whole = None
        shares = step.executor.plan.sharers > 1
        if store.shared and not shares:
            self._states.pop(store, None)
            unshare(store, optimizer)
            memory.generation += 1
        if not isinstance(updater, ReducedUpdates):
            with super()._learning(training, batch, step):
                yield
            return
        state = self._shared_state(memory, store, optimizer) if shares else None
        updater.prepare(None if state is None else state.sums, batch.size > 0, int(optimizer.iterations) + 1)
        try:
            yield
        except BaseException:
            self._states.pop(store, None)  # whose counts of what was sent may differ
            raise
        averages = self._averages_of(step.executor)
        averages.start(batch.size / batch.total)
        averages.finish()

    def _shared_state(self, memory: Memory, store: ParameterStore, optimizer: Optimizer) -> HostState | None:
        """The one copy of weights and slots; None, with a warning, where there is no room for it."""
        state = self._states.get(store)
        if state is not None and state.holds(store, optimizer):
            return state
        self._states.pop(store, None)
        self.accumulation.settle()
        memory.generation += 1
        try:
            state = self._states[store] = HostState(store, optimizer, self.small)
            return state
        except NotSharedError as error:
            if store.shared:
                unshare(store, optimizer)
            if self.is_main:
                told = f"each rank has weights of its own, which takes more memory, and sends gradients: {error}"
                warnings.warn(told, UserWarning, stacklevel=2)
            self._share(False)
            return None

    def _weight_portions(self, training: Training, kind: str, batch: Batch) -> dict[str, float]:
        """As for whole images; weights that are cut like images count each by their part."""
        portions: dict[str, float] = {}
        outputs = training.outputs
        if kind == "predict" or not outputs or self._step is None:
            return portions
        names, own = [], []
        weights = training.sample_weights(batch)
        for output, weight, name in zip(outputs, weights, self._step.traced.weights, strict=True):
            if weight is not None and getattr(output.loss, "reduction", None) == "mean_with_sample_weight":
                placed = self._placements.get(name or "")
                part = weight if placed is None or not self._is_cut(placed) else weight[placed.slices]
                names.append((output.name, placed is not None and self._is_cut(placed)))
                own.append(float(part.sum(dtype=np.float64)) if batch.size else 0.0)
        if not names:
            return portions
        total = self.small.allreduce(np.array(own), "the sums of the sample weights")
        for (name, cut), mine, every in zip(names, own, total.tolist(), strict=True):
            copies = 1 if cut else len(self.partition.group)
            portions[f"weights of {name}"] = mine * copies / every if every else 0.0
        return portions

    @property
    def _placements(self) -> dict[str, Placement]:
        return {} if self._step is None else self._step.executor.plan.graph.placements

    def _is_cut(self, placed: Placement) -> bool:
        return not placed.is_whole

    # --- results ---------------------------------------------------------------------------------------------------
    def _update_metrics(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        placed = self._predictions()
        names = [output.name for output in training.outputs]
        y = dict(zip(names, _parts(training.targets(batch), placed), strict=True))
        weights = dict(zip(names, _parts(training.sample_weights(batch), placed), strict=True))
        one = len(names) == 1
        none = all(weight is None for weight in weights.values())
        part = Batch(
            batch.x,
            y[names[0]] if one else y,
            None if none else weights[names[0]] if one else weights,
            batch.size,
            batch.total,
            batch.offset,
        )
        return training.update_metrics(part, results)

    def _counting(self, training: Training) -> list[float]:
        """Means within each sample count by the part of it that they are over; sums over elements as they are."""
        placed = self._predictions()
        return [
            1.0 if place is None else place.counts * (place.portion if isinstance(metric, Mean) else 1.0)
            for metric, place in zip(training.metrics, (placed[i] for i in training.metric_outputs), strict=True)
        ]

    @property
    def _told_options(self) -> str:
        mesh = self.partition
        return f"{super()._told_options}, mesh {mesh}, network {mesh.network}, columns {', '.join(mesh.columns)}"

    def _predictions(self) -> list[Placement | None]:
        """Where each output lies, in their flat order."""
        assert self._step is not None
        names = tree.flatten(self._step.traced.predictions)
        return [self._placements.get(name) for name in names]

    def gathered(self, predictions: Any, batch: Batch) -> Any:
        leaves = tree.flatten(predictions)
        placed = [None] * len(leaves) if self._step is None else self._predictions()
        if self.gathers:
            leaves = [self._whole(leaf, place, batch) for leaf, place in zip(leaves, placed, strict=True)]
        return tree.pack_sequence_as(predictions, leaves)

    def _whole(self, leaf: np.ndarray, place: Placement | None, batch: Batch) -> np.ndarray:
        """A prediction of all processes: each part once."""
        what = "the predictions of a batch"
        if leaf.shape[:1] != (max(batch.size, 1),):
            if self.partition.extent("batch") == 1 and (place is None or place.is_whole):
                return leaf
            raise not_by_sample(leaf, batch.size)
        counts = batch.size > 0 and (self._leads if place is None else place.counts)
        own = leaf[: batch.size] if counts else leaf[:0]
        box = place.box[1:] if place is not None else tuple((0, extent) for extent in leaf.shape[1:])
        told = np.array([batch.offset, len(own), *(end for interval in box for end in interval)])
        boxes = self.small.allgather(told, what)
        parts = self.small.allgatherv(np.ascontiguousarray(own).reshape(-1), what)
        shape = place.shape[1:] if place is not None else leaf.shape[1:]
        found = np.empty((batch.total, *shape), leaf.dtype)
        at = 0
        for offset, size, *ends in boxes.tolist():
            where = tuple(slice(start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True))
            target = found[(slice(offset, offset + size), *where)]
            target[...] = parts[at : at + target.size].reshape(target.shape)
            at += target.size
        return found


def _parts(arrays: Sequence[Any], placed: Sequence[Placement | None]) -> list[Any]:
    """Targets or weights of what this process predicts: cut along the axes that they share with the predictions."""
    found = []
    for array, place in zip(arrays, placed, strict=True):
        if array is None or place is None or place.is_whole:
            found.append(array)
            continue
        axes = zip(array.shape[1:], place.shape[1:], place.slices[1:], strict=False)
        found.append(array[(slice(None), *(part if n == m else slice(None) for n, m, part in axes))])
    return found
