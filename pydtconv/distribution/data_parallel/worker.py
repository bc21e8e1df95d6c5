"""One of the processes that train a model together: what `pydtconv.replica` is replaced by under MPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from pydtconv.callbacks import Callback
from pydtconv.distribution.data_parallel import agreement
from pydtconv.distribution.data_parallel.joint_results import JointResults
from pydtconv.distribution.data_parallel.replication import replicate
from pydtconv.distribution.data_parallel.shared_step import SharedStep
from pydtconv.distribution.data_parallel.synchronizer import Synchronizer
from pydtconv.distribution.gradients.accumulation import Accumulation
from pydtconv.distribution.gradients.averages import Averages
from pydtconv.distribution.gradients.backend_choice import BackendChoice
from pydtconv.distribution.gradients.bucket_tuning import BucketTuning
from pydtconv.distribution.gradients.buckets import Pieces, WholeVariables, equal_pieces
from pydtconv.distribution.gradients.column_step import ColumnStep
from pydtconv.distribution.gradients.gradient_step import GradientStep, StepHooks
from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.gradients.shards import ShardedStep
from pydtconv.distribution.mpi.channels import Channels
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.distribution.options import Options
from pydtconv.graph import Executor, Memory
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers import Optimizer
from pydtconv.support import random
from pydtconv.trainers.data_adapters.arrays import ArrayData, Batch
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.trainers.step_functions import StepFunction
from pydtconv.trainers.training import Training


class Worker(JointResults):
    """A process among `size`.

    Each computes on its share of every batch; the gradients' sum, and with it every update, is the same in all.
    """

    reads_gradients = True
    #: where processes share columns of dense layers: those that together have all of them
    group: Communicator | None = None

    def __init__(self, channels: Channels, options: Options) -> None:
        super().__init__(channels)
        self.options = options
        self.shards = options.auto_shard_dataset
        self.shard = options.shard
        self.synchronizer = Synchronizer(channels.statistics)
        self.accumulation = Accumulation(channels.large)
        self._prepared: tuple[ReferenceType[Training], ParameterStore | None, Optimizer | None] | None = None
        self._backends = BackendChoice(channels, options)
        #: of each model that is trained: a callback of one's fit may train another one
        self._steps: WeakKeyDictionary[ParameterStore, GradientStep] = WeakKeyDictionary()
        self._stepped: ReferenceType[GradientStep] | None = None
        self._averages: Averages | None = None
        self._averages_by_plan: WeakKeyDictionary[Executor, Averages] = WeakKeyDictionary()

    # --- before ----------------------------------------------------------------------------------------------------
    def start(self, kind: str, data: ArrayData | StreamData) -> None:
        agreement.check(agreement.described_start(kind, data), self.small)

    @contextmanager
    def planning(self) -> Iterator[None]:
        error: Exception | None = None
        try:
            yield
        except Exception as found:  # any: the others would wait for this process in the first step
            error = found
        agreement.raise_for_all(error, self.small)

    def prepare(self, training: Training, kind: str, data: ArrayData | StreamData, single: bool = False) -> None:
        memory = training.memory
        store = memory.store
        token = (ref(training), store, training.optimizer)
        known = self._prepared
        fresh = known is None or any(a is not b for a, b in zip(known, token, strict=True))
        reduced = kind != "train" or store is None or store.shared or store in self._steps
        if single and not fresh and reduced:
            return
        agreement.check(agreement.described(training, kind, data, self._told_options, single), self.small)
        if kind == "train" and not single:
            self.accumulation.settle()  # what a run that an error has ended may have left
            random.set_state(self.small.bcast_object(random.get_state(), "the random state"))
        if kind == "train" or fresh:
            self._replicate(training)
            self._prepared = token
        if kind == "train" and store is not None and self.shard:
            assert training.optimizer is not None
            training.optimizer.check_shards(store.variables)
            self._step_of(memory, store, training.optimizer)

    @property
    def _told_options(self) -> str:
        return str(self.options)

    def begin(self, settings: Mapping[str, Any], callbacks: Sequence[Callback]) -> None:
        agreement.check(agreement.described_fit(settings, callbacks), self.small)

    def epoch_ended(self, training: Training) -> None:
        agreement.check(agreement.described_changes(training), self.small)
        store = training.memory.store
        if store is not None:
            agreement.check_weights(store.variables, self.small)

    def _step_of(self, memory: Memory, store: ParameterStore, optimizer: Optimizer) -> GradientStep:
        """That of a store's gradients, which all processes ask for at the same time."""
        step = self._steps.get(store)
        if step is None or not step.serves(optimizer):
            if step is not None:
                step.finish()
            step = self._steps[store] = self._made_step(memory, store, optimizer)
        return step

    def _made_step(self, memory: Memory, store: ParameterStore, optimizer: Optimizer) -> GradientStep:
        options, sharded = self.options, self.options.shard is not None
        pieces: Pieces | None = None
        if sharded and optimizer.goes_by_variable:
            pieces = WholeVariables(store, options.bucket_bytes, self.size)
        elif sharded:
            pieces = partial(equal_pieces, count=self.size)
        reduction = Reduction(
            store,
            self.large,
            self._backends.of(memory),
            options.bucket_bytes,
            options.overlap,
            pieces,
            options.releases,
            options.check_gradients,
            self.accumulation.peers,
        )
        if sharded:
            return ShardedStep(reduction, self.accumulation, self.small, optimizer)
        tunes = options.bucket_size == "tune"
        tuning = BucketTuning(reduction.set_buckets, self._slowest) if tunes else None
        if self.group is not None:
            return ColumnStep(reduction, self.accumulation, self.small, tuning, self.group)
        return GradientStep(reduction, self.accumulation, self.small, tuning)

    def settle(self, state: bool = True, columns: bool | None = None) -> None:
        """Also waits for the reductions of steps that an error broke off."""
        for step in self._steps.values():
            step.finish()
        self.accumulation.settle()
        # of the last step alone: not all processes have forgotten the same models, which are no more, by now
        stepped = None if self._stepped is None else self._stepped()
        if state and stepped is not None:
            stepped.to_host()

    def _slowest(self, times: np.ndarray) -> np.ndarray:
        return self.small.allgather(times, "the times of all ranks").max(0)

    def _replicate(self, training: Training) -> None:
        replicate(training, self.small)

    # --- a step ----------------------------------------------------------------------------------------------------
    @contextmanager
    def running(
        self, training: Training, kind: str, batch: Batch, step: StepFunction | None = None
    ) -> Iterator[SharedStep | None]:
        memory = training.memory
        state = memory.state
        state.sample_offset, state.samples = batch.offset, max(batch.size, 1)
        state.portions = {"samples": batch.size / batch.total}
        state.synchronizer = self.synchronizer
        self.synchronizer.counts = batch.size > 0
        try:
            if step is None:
                with self._sharing(training, kind, batch) as shared:
                    yield shared
                return
            state.portions |= self._weight_portions(training, kind, batch)
            if kind == "train" and memory.store is not None and step.executor.plan.gradient_order:
                with self._learning(training, batch, step):
                    yield None
            else:  # nothing learns, but statistics may move
                averages = self._averages_of(step.executor)
                yield None
                averages.start(batch.size / batch.total)
                averages.finish()
        finally:
            state.sample_offset = state.samples = 0

    @contextmanager
    def _learning(self, training: Training, batch: Batch, step: StepFunction) -> Iterator[None]:
        """Around a step whose gradients are reduced."""
        memory, optimizer = training.memory, training.optimizer
        assert memory.store is not None
        assert optimizer is not None
        gradients = self._step_of(memory, memory.store, optimizer)
        self._stepped = ref(gradients)
        self.way_of_gradients = str(gradients.reduction.backend)
        gradients.begin(optimizer, memory.keeps_gradients, training.is_read, batch.size, batch.total)
        self._averages = self._averages_of(step.executor)
        plan, portion = step.executor.plan, batch.size / batch.total
        step.executor.hooks = StepHooks(gradients, self._averages, plan, portion)
        try:
            yield
        except BaseException:
            gradients.reduction.stop()
            raise
        finally:
            step.executor.hooks = None

    @contextmanager
    def _sharing(self, training: Training, kind: str, batch: Batch) -> Iterator[SharedStep]:
        """Around a step that the model's class writes itself."""
        if kind == "train" and self.options.shard:
            raise NotImplementedError("shard: expected the step of fit, got a train_step of the model's class")
        portion = self.portion = batch.size / batch.total
        shared = SharedStep(
            f"{kind}_step",
            portion,
            self._leads,
            self.small,
            self.large,
            self._averages_of,
            self.accumulation,
            training.is_read,
            int(self._noticed or 0),
        )
        try:
            yield shared
        finally:
            self.portion = 1.0
            self.asked = shared.asked

    @property
    def _leads(self) -> bool:
        """Whether what this process finds of its samples counts: the others with the same images find the same."""
        return True

    def _weight_portions(self, training: Training, kind: str, batch: Batch) -> dict[str, float]:
        """What part of each mean over the global batch is over this process's samples, where these have weights."""
        portions: dict[str, float] = {}
        outputs = training.outputs
        if kind == "predict" or not outputs:
            return portions
        weights = training.sample_weights(batch)
        names = [
            (output.name, weight)
            for output, weight in zip(outputs, weights, strict=True)
            if weight is not None and getattr(output.loss, "reduction", None) == "mean_with_sample_weight"
        ]
        if names:
            own = np.array([float(weight.sum(dtype=np.float64)) if batch.size else 0.0 for _, weight in names])
            total = self.small.allreduce(own.copy(), "the sums of the sample weights")
            for (name, _), part, whole in zip(names, own, total, strict=True):
                portions[f"weights of {name}"] = float(part / whole) if whole else 0.0
        return portions

    def _averages_of(self, executor: Executor) -> Averages:
        """The variables that the samples of this process alone change in forward."""
        found = self._averages_by_plan.get(executor)
        if found is None:
            graph = executor.plan.graph
            variables = [
                node.inputs[i].variable
                for node in graph.nodes
                if (graph.training or getattr(node.op, "always", False)) and not node.op.synchronized
                for i in node.op.updates
                if node.inputs[i].variable is not None
            ]
            found = self._averages_by_plan[executor] = Averages(list(dict.fromkeys(variables)), self.large)
        return found

    def apply(self, optimizer: Optimizer, store: ParameterStore) -> None:
        self._steps[store].update(optimizer)
        if self._averages is not None:
            self._averages.finish()
