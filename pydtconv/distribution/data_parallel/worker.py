"""One of the processes that train a model together: what `pydtconv.replica` is replaced by under MPI."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from pydtconv import config, tree
from pydtconv.callbacks import Callback
from pydtconv.distribution.data_parallel import agreement
from pydtconv.distribution.data_parallel.metric_totals import MetricTotals
from pydtconv.distribution.data_parallel.shared_step import SharedStep
from pydtconv.distribution.data_parallel.synchronizer import Synchronizer
from pydtconv.distribution.gradients.accumulation import Accumulation
from pydtconv.distribution.gradients.backend_choice import BackendChoice
from pydtconv.distribution.gradients.bucket_tuning import BucketTuning
from pydtconv.distribution.gradients.reduction import Averages, Reduction
from pydtconv.distribution.gradients.shards import Shards
from pydtconv.distribution.mpi.channels import Channels
from pydtconv.distribution.options import Options
from pydtconv.graph import Executor, Memory, Plan
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers import Optimizer
from pydtconv.support import random
from pydtconv.support.uninterrupted import ENDING
from pydtconv.trainers.data_adapters.arrays import ArrayData, Batch
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.trainers.step_functions import Results, StepFunction
from pydtconv.trainers.strategy import Strategy
from pydtconv.trainers.training import Training

#: elements of a variable that are sent at a time
_SENT = 1 << 20
#: what to try where gradients are not finite
_SPREADS = (
    "convolutions by Winograd's method make infinities of values near the largest: "
    "config.set_conv_precision('strict') leaves that method out"
)


class Worker(Strategy):
    """A process among `size`.

    Each computes on its share of every batch; the gradients' sum, and with it every update, is the same in all.
    """

    reads_gradients = True

    def __init__(self, channels: Channels, options: Options) -> None:
        self.channels = channels
        self.world = channels.world
        self.options = options
        self.rank, self.size = self.world.rank, self.world.size
        self.shards = options.auto_shard_dataset
        self.shard = options.shard
        self.departures = channels.departures
        self.small, self.large = channels.small, channels.large
        self.synchronizer = Synchronizer(channels.statistics)
        self.accumulation = Accumulation(channels.large)
        self._reduces = self._is_read = True
        self.files = channels.files
        self._prepared: tuple[ReferenceType[Training], ParameterStore | None, Optimizer | None] | None = None
        self._backends = BackendChoice(channels, options)
        #: of each model that is trained: a callback of one's fit may train another one
        self._reductions: WeakKeyDictionary[ParameterStore, Reduction] = WeakKeyDictionary()
        self._tunings: WeakKeyDictionary[ParameterStore, BucketTuning] = WeakKeyDictionary()
        self._shards: WeakKeyDictionary[ParameterStore, Shards] = WeakKeyDictionary()
        self._stepped: ReferenceType[Shards] | None = None
        self._averages: Averages | None = None
        self._averages_by_plan: WeakKeyDictionary[Executor, Averages] = WeakKeyDictionary()
        self._total = 0
        self._told_of_loss = False
        self._noticed: int | None = None

    def collected(self, value: Any, what: str) -> list[Any]:
        return [self.small.bcast_object(value, what, root) for root in range(self.size)]

    # --- files -----------------------------------------------------------------------------------------------------
    def writes(self, path: Path) -> bool:
        return self.is_main or self.files.expect(path)

    def done(self, path: Path) -> None:
        self.files.announce(path)

    def wait_for(self, path: Path) -> None:
        self.files.wait_for(path)

    def broadcast(self, value: Any, what: str) -> Any:
        return self.small.bcast_object(value, what)

    def meet(self, what: str) -> None:
        self.small.allreduce(np.zeros(1), what)

    def ask_to_end(self, number: int | None) -> None:
        self._noticed = number
        if number is None:
            self.asked = None

    def share_signals(self, what: str) -> None:
        self._note_signals(self.small.allreduce(self._signals(), what))

    def _signals(self) -> np.ndarray:
        """For each of ENDING whether it asks this process to end."""
        return np.array([self._noticed == number for number in ENDING], np.float64)

    def _note_signals(self, ranks: np.ndarray) -> None:
        """ranks: for each of ENDING, how many processes it asks."""
        self.asked = next((number for number, count in zip(ENDING, ranks, strict=True) if count), None)

    # --- data ------------------------------------------------------------------------------------------------------
    def share(self, count: int) -> slice:
        """Contiguous, in the order of ranks; sizes differ by one at most, and the first ranks have the larger ones."""
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def counted(self, size: int | None, whole: int | None) -> tuple[int, int] | None:
        own = np.array([-1 if size is None else size, -1 if whole is None else whole])
        sizes, wholes = self.small.allgather(own, "the sizes of the shares of a batch").T
        if (sizes < 0).all():
            return None
        if wholes.max() >= 0 and (wholes != wholes[0]).any():
            told = ", ".join("none" if n < 0 else str(n) for n in wholes)
            raise RuntimeError(f"the batch: expected the same number of samples from the data of all ranks, got {told}")
        sizes = np.maximum(sizes, 0)
        return int(sizes[: self.rank].sum()), int(sizes.sum())

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
        reduced = kind != "train" or store is None or store.shared or store in self._reductions
        if single and not fresh and reduced:
            return
        agreement.check(agreement.described(training, kind, data, self._told_options, single), self.small)
        if kind == "train" and not single:
            self.accumulation.settle()  # what a run that an error has ended may have left
            random.set_state(self.small.bcast_object(random.get_state(), "the random state"))
        if kind == "train" or fresh:
            self._replicate(training)
            self._prepared = token
        if kind == "train" and store is not None and self.options.shard:
            self._shard(training.optimizer, memory, store)

    def _shard(self, optimizer: Optimizer | None, memory: Memory, store: ParameterStore) -> None:
        """Raises NotImplementedError for an optimizer of which a process cannot have a part."""
        assert optimizer is not None
        optimizer.check_shards(store.variables)
        if store not in self._shards or not self._shards[store].are_of(optimizer):
            self._shards[store] = Shards(self._reduction(memory, store), optimizer, self.small)

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

    def left(self, method: str, error: BaseException) -> None:
        self.departures.leave(method, error)

    def any(self, value: bool, what: str) -> bool:
        return bool(self.small.allreduce(np.array([float(value)]), what)[0])

    def _reduction(self, memory: Memory, store: ParameterStore) -> Reduction:
        """That of a store's gradients, which all processes ask for at the same time."""
        if store in self._reductions:
            return self._reductions[store]
        options = self.options
        backend = self._backends.of(memory)
        reduction = Reduction(store, self.large, backend, options.bucket_bytes, options.overlap, options.shard)
        reduction.check = options.check_gradients
        if options.bucket_size == "tune":
            self._tunings[store] = BucketTuning(reduction.set_buckets, self._slowest)
        self._reductions[store] = reduction
        return reduction

    def settle(self, state: bool = True) -> None:
        """Also waits for the reductions of steps that an error broke off."""
        for reduction in self._reductions.values():
            reduction.finish()
        self.accumulation.settle()
        for shards in self._shards.values():
            shards.weights.finish()
        # of the last step alone: not all processes have forgotten the same models, which are no more, by now
        stepped = None if self._stepped is None else self._stepped()
        if state and stepped is not None:
            stepped.to_host()

    def _slowest(self, times: np.ndarray) -> np.ndarray:
        return self.small.allgather(times, "the times of all ranks").max(0)

    def _replicate(self, training: Training) -> None:
        """Rank 0's variables, optimizer state, and random state of the model.

        One by one: which of them lie in flat arrays may differ, as where rank 0 alone has loaded weights.
        """
        state, what = training.memory.state, "the variables of rank 0"
        state.seed, state.step = self.small.bcast_object((state.seed, state.step), "the model's random state")
        variables = [*training.variables, *(() if training.optimizer is None else training.optimizer.variables)]
        agreement.check(
            [f"state {i}: shape {each.shape}, {each.dtype}" for i, each in enumerate(variables)], self.small
        )
        for variable in variables:
            found = self._of_rank_0(variable.array, what)
            if found is not None:
                variable.assign(found)

    def _of_rank_0(self, own: np.ndarray, what: str) -> np.ndarray | None:
        """Rank 0's array; None where this process has the same: slots of zeros then need no memory yet."""
        flat, found = own.reshape(-1), None
        for start in range(0, flat.size, _SENT):
            part = slice(start, start + _SENT)
            sent = flat[part] if self.is_main else np.empty_like(flat[part])
            self.small.bcast(sent, what)
            if not np.array_equal(sent.view(np.uint8), flat[part].view(np.uint8)):
                found = own.copy() if found is None else found
                found.reshape(-1)[part] = sent
        return found

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
            if kind == "train" and memory.store is not None and memory.store.variables:
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
        memory = training.memory
        assert memory.store is not None
        reduction, tuning = self._reduction(memory, memory.store), self._tunings.get(memory.store)
        self._total = batch.total
        optimizer = training.optimizer
        assert optimizer is not None
        whole = training.is_read or memory.keeps_gradients or optimizer.has_own_apply or reduction.releases
        self._reduces = self.accumulation.begin(optimizer, memory.store.variables, whole)
        takes = self._reduces and not whole and optimizer.gradient_accumulation_steps
        if tuning is not None and self._reduces:
            tuning.begin(batch.total)
        reduction.begin(
            batch.size > 0,
            in_blocks=optimizer.works_in_rows and not memory.keeps_gradients and not reduction.shard,
            reduces=self._reduces,
            complete=partial(self.accumulation.take, optimizer) if takes else None,
        )
        self._averages = self._averages_of(step.executor)
        shards = self._shards.get(memory.store)
        self._is_read = training.is_read
        if shards is not None:
            self._stepped = ref(shards)
            shards.scatter()
        hooks = _StepHooks(reduction, self._averages, step.executor.plan, batch.size / batch.total, shards)
        step.executor.hooks = hooks
        try:
            yield
        except BaseException:
            reduction.stop()
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
        reduction, tuning = self._reductions[store], self._tunings.get(store)
        if reduction.check:
            self._check_gradients(reduction)
        shards = self._shards.get(store)
        if shards is not None and self._reduces:
            shards.step(optimizer, lambda squares: self.small.allreduce(squares, "the norms"), self._is_read)
        elif shards is not None:
            optimizer.accumulate(store, shards.own)
        elif not self._reduces:
            optimizer.apply_store(store)
        elif optimizer.works_in_parts:
            optimizer.begin(store)
            for part, total in reduction.arrivals():
                optimizer.apply_part(part, total)
            optimizer.end()
        else:
            for _ in reduction.arrivals():
                pass
            optimizer.apply_store(store)
        if self._averages is not None:
            self._averages.finish()
        if tuning is not None and self._reduces and tuning.end(self._total) and self.is_main:
            print(f"buckets of {tuning.chosen} MiB are the fastest", flush=True)

    def _check_gradients(self, reduction: Reduction) -> None:
        """Raises FloatingPointError, in all processes, naming variables and ranks where gradients are not finite."""
        own = np.array([-1 if reduction.broken is None else reduction.broken])
        numbers = self.small.allgather(own, "the check of the gradients")[:, 0].tolist()
        variables = reduction.store.variables
        bad = [f"{variables[n].path} on rank {rank}" for rank, n in enumerate(numbers) if n >= 0]
        if bad:
            raise FloatingPointError(
                f"step {reduction.step}: the gradient is not finite, first that of {', '.join(bad)}"
                + ("" if config.conv_precision() == "strict" else f"; {_SPREADS}")
            )

    # --- results ---------------------------------------------------------------------------------------------------
    def note(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        totals = MetricTotals(training.metrics)
        logs = self._update_own(training, batch, results)
        losses = np.array([results.loss, *results.losses.values()], np.float64)
        own = np.concatenate([losses, totals.gained(self._counting(training)), np.zeros(len(ENDING))])
        if not batch.size:
            own[:] = 0
        own[-len(ENDING) :] = self._signals()
        whole, signals = np.split(self.small.allreduce(own, "the sums of loss and metrics"), [-len(ENDING)])
        self._note_signals(signals)
        gained = whole[losses.size :]
        totals.set(gained)
        if not np.isfinite(whole[0]):
            self._tell_of_loss(float(whole[0]), own[0])
        by_name = dict(zip(results.losses, whole[1 : losses.size].tolist(), strict=True))
        training.track_losses(float(whole[0]), by_name, batch.total)
        if training.overrides_metrics:  # once more, with what the others have gained: it may give more than metrics
            totals.set(gained - totals.gained_here)
            logs = self._update_own(training, batch, results)
            totals.set(gained)
            logs = self.small.bcast_object(logs, "the results of compute_metrics")
        return logs | training.results()

    def _update_own(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        self.portion = batch.size / batch.total
        try:
            return self._update_metrics(training, batch, results)
        finally:
            self.portion = 1.0

    def _update_metrics(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        """Lets what this process has predicted into its metrics; returns all results so far."""
        return training.update_metrics(batch, results)

    def _counting(self, training: Training) -> list[float] | None:
        """For each metric what part of its gain in this process counts; None: all of each."""
        return None

    def _tell_of_loss(self, whole: float, own: float) -> None:
        """Warns once, on rank 0, of the ranks whose part of the loss is not finite."""
        losses = self.small.allgather(np.array([own]), "the loss of each rank")[:, 0]
        bad = " and ".join(f"rank {rank}" for rank in np.flatnonzero(~np.isfinite(losses)))
        if self.is_main and not self._told_of_loss:
            told = f"the loss is {whole}; it is not finite on {bad or 'none, but their sum is not'}"
            advice = "check_gradients=True (--check-gradients) names the parameter"
            warnings.warn(f"{told}; {advice}", UserWarning, stacklevel=2)
        self._told_of_loss = True

    def gathered(self, predictions: Any, batch: Batch) -> Any:
        return tree.map_structure(
            lambda leaf: self.small.allgatherv(_own_rows(leaf, batch), "the predictions of a batch"), predictions
        )


def _own_rows(leaf: np.ndarray, batch: Batch) -> np.ndarray:
    """The rows of a prediction that are of this process's samples, each of which has as many."""
    samples = max(batch.size, 1)
    each, more = divmod(len(leaf) if leaf.ndim else 0, samples)
    if more or not each:
        raise not_by_sample(leaf, samples)
    return leaf[: each * batch.size]


def not_by_sample(leaf: np.ndarray, samples: int) -> ValueError:
    """The error of a prediction without rows for each sample, of so many."""
    return ValueError(
        f"predict: expected outputs with rows for each sample, which several processes share, got shape {leaf.shape} "
        f"for {samples} sample(s)"
    )


class _StepHooks:
    """The hooks of one run of a training step."""

    def __init__(
        self, reduction: Reduction, averages: Averages | None, plan: Plan, portion: float, shards: Shards | None
    ) -> None:
        self.reduction = reduction
        self.averages = averages
        self.plan = plan
        self.portion = portion
        self.shards = shards
        self.after = reduction.after
        self.gradient_ready = reduction.gradient_ready

    def before(self, index: int, step: Any) -> None:
        if self.shards is not None:
            self.shards.weights.before(index, self.plan)
        if index == self.plan.backward_start and self.averages is not None:
            self.averages.start(self.portion)
