"""`BatchTrainer`: one step of training, test or prediction on one batch, and the plan of such a step.

A step is traced once for each shape of batch, planned, and run by an executor (see step_functions.py).  Its
predictions then update the metrics, which are NumPy, and in training the optimizer takes a step over the flat arrays
of the store.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import config, replica, tree
from pydtconv._ext.runtime import rouse_threads
from pydtconv.engine import limits
from pydtconv.engine.largest_batch import largest_batch
from pydtconv.engine.room import available
from pydtconv.graph import Plan
from pydtconv.hooks import as_result
from pydtconv.suggest import naming_arguments
from pydtconv.support.sizes import as_bytes
from pydtconv.trainers import strategy
from pydtconv.trainers.checks import check_inputs, check_targets
from pydtconv.trainers.compilation import Compilable
from pydtconv.trainers.custom_steps import as_numbers, before_step
from pydtconv.trainers.data_adapters.arrays import ArrayData, Batch, to_arrays
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.trainers.metric_runs import Gathering
from pydtconv.trainers.step_functions import Results, StepFunction
from pydtconv.trainers.targets import Targets

#: bytes of inputs up to which calls on arrays keep their step's arena
_KEPT_INPUT = 1 << 24


class BatchTrainer(Compilable):
    """A compiled model that is trained batch by batch."""

    # --- a step ----------------------------------------------------------------------------------------------------
    def _pydt_step(self, kind: str, batch: Batch, step: StepFunction | None = None) -> dict[str, Any]:
        """One step of training or testing on the batch; returns all results so far.  step: see `_pydt_run`."""
        if self._pydt_custom.has(kind):
            return self._pydt_custom.logs(kind, batch)
        results = self._pydt_train_batch(batch, step) if kind == "train" else self._pydt_run(kind, batch, step)
        return as_numbers(self._pydt_note(batch, results))

    def _pydt_train_batch(self, batch: Batch, step: StepFunction | None = None) -> Results:
        """One training step on the batch: forward, backward, update.

        A large model's gradients are applied in the middle of backward, unless the optimizer needs all at once or
        somebody reads them (`keeps_gradients` of the memory, `reads_gradients` of the replica).  A step that an
        exception breaks off there leaves some variables updated, and `optimizer.iterations` as it was.
        """
        results = self._pydt_run("train", batch, step)
        results.assign_trained()
        if not results.applied:
            self._pydt_apply_gradients()
        return results

    def _pydt_apply_gradients(self) -> None:
        """Lets the optimizer take a step with the gradients in the store."""
        store = self._pydt_steps.memory.store
        if store is not None and store.variables:
            strategy.current().apply(self.optimizer, store)

    def _pydt_run(self, kind: str, batch: Batch, step: StepFunction | None = None) -> Results:
        """One run of the plan for this kind ("train", "test", "predict") and shape of batch.

        step: that of the batch, where it was looked for just before; None to look for it.
        """
        if kind == "train":
            before_step(self)
        if step is None:
            rouse_threads()
            step = self._pydt_steps.step(kind, batch, self._pydt_targets)
            if kind == "train":
                self._pydt_make_slots()
        shared = strategy.current().running(self._pydt_training, kind, batch, step)
        with self._pydt_steps.workspace.running(), shared:
            if kind == "predict":
                results = step.run(tree.flatten(batch.x))
            else:
                targets = self._pydt_targets
                assert targets is not None
                y, weights = targets.fed(batch.y), targets.weights(batch.sample_weight)
                results = step.run(tree.flatten(batch.x), y, weights)
        results.added.show(self)
        return results

    def _pydt_predict_batch(self, batch: Batch) -> Any:
        """The outputs for the whole batch, whose share this process computes."""
        if self._pydt_custom.has("predict"):
            return strategy.current().gathered(self._pydt_custom.run("predict", batch), batch)
        results = self._pydt_run("predict", batch)
        for update in results.updates:
            update.run(batch.size / batch.total)
        return strategy.current().gathered(results.predictions, batch)

    def _pydt_called_on(self, x: Any) -> Any:
        """The outputs for arrays by the step of `predict`; None where a call on them is to be traced by itself.

        So it is for large arrays, for the step keeps its arena, while a step of the model runs, and where random
        numbers are drawn: each call draws from the seed that holds then.  Calls on arrays run on the CPU.
        """
        leaves = tree.flatten(x)
        floats = all(type(leaf) is np.ndarray and leaf.dtype.kind == "f" and leaf.size for leaf in leaves)
        if not leaves or not floats or sum(leaf.nbytes for leaf in leaves) > _KEPT_INPUT:
            return None
        if {leaf.shape[:1] for leaf in leaves} != {leaves[0].shape[:1]} or not leaves[0].ndim:
            return None
        here = config.device() == "cpu" and replica.current().size == 1 and self.split is None
        if self.run_eagerly or not here or self._pydt_steps.workspace.runs:
            return None
        batch = Batch(x, None, None, len(leaves[0]))
        with limits.limited():
            step = self._pydt_steps.step("predict", batch, None)
            if any(step.traced.masks) or any(node.op.draws for node in step.traced.graph.nodes):
                return None  # masks go with the outputs of a call
            results = self._pydt_run("predict", batch, step)
        for update in results.updates:
            update.run(1.0)
        return tree.map_structure(lambda leaf: as_result(leaf.copy()), results.predictions)

    def _pydt_note(self, batch: Batch, results: Results) -> dict[str, Any]:
        """Updates loss means and metrics with a batch; returns all results so far."""
        return strategy.current().note(self._pydt_training, batch, results)

    def _pydt_track_losses(self, loss: float | None, losses: Mapping[str, float], samples: int) -> None:
        """Updates the means of the loss and of the outputs' losses with those of a batch."""
        self._pydt_loss_tracker.update_state(loss, sample_weight=samples)
        self._pydt_track_output_losses(losses, samples)

    def _pydt_prepare(
        self, kind: str, data: ArrayData | StreamData, single: bool = False
    ) -> tuple[Batch | None, StepFunction | None]:
        """Checks data against the model and traces the first step, before anything is changed.

        Returns the first batch where it was looked at, and its step where all was as it is now when that was prepared.
        """
        if kind != "predict" and not self.compiled:
            raise ValueError(f"call compile() before {'fit' if kind == 'train' else 'evaluate'}()")
        if not single:
            strategy.current().start(kind, data)
        if self._pydt_custom.has(kind):
            self._pydt_custom.check(kind)
            if isinstance(data, StreamData):
                data.whole = kind != "predict"
                if not data.indexed:
                    data.first()  # which a generator may not have
            if replica.current().size > 1:
                data.first()  # which processes compare
                with self._pydt_planning(single):
                    pass  # a process whose model is of another kind plans, and waits for this one
            strategy.current().prepare(self._pydt_training, kind, data, single)
            return None, None
        if kind == "train":
            self._pydt_check_optimizer()
        if isinstance(data, ArrayData):
            data.late = not self._pydt_overrides("compute_metrics")  # type: ignore[attr-defined]  # which reads the inputs
        batch = data.first()
        alike = self._pydt_steps.has_prepared(kind, batch)
        with self._pydt_turn.taken():
            trainable = self.trainable_variables if kind == "train" else []  # type: ignore[attr-defined]
            if kind == "train":
                self._pydt_steps.check_trainable(trainable)
            targets = None if kind == "predict" else self._pydt_targets
            with self._pydt_planning(single):  # with all checks: one process may have got what the others have not
                if not alike:
                    check_inputs(self, batch.x)
                step = self._pydt_first_step(kind, batch, targets, single)
                if targets is not None:
                    y = data.y if isinstance(data, ArrayData) else batch.y
                    check_targets(targets, y, step.shapes, data.class_names)
            made_with = (targets, self._pydt_compiled_metrics, getattr(self, "optimizer", None))
            known = alike and self._pydt_steps.was_made_with(kind, step, made_with)
            if targets is not None and not known:
                assert self._pydt_compiled_metrics is not None
                self._pydt_compiled_metrics.build(
                    targets.names, targets.arrange(batch.y, "y"), tree.flatten(step.shapes)
                )
            if kind == "train" and not known:
                if not self._pydt_steps.trains(trainable):  # the first trace has built layers
                    trainable = self.trainable_variables  # type: ignore[attr-defined]
                self._pydt_check_trainable(trainable)
                self.optimizer.ready(self._pydt_with_slots(trainable), self._pydt_steps.memory.store)
            strategy.current().prepare(self._pydt_training, kind, data, single)
            if not known and (trainable or kind != "train"):
                self._pydt_steps.note_prepared(kind, batch, step, made_with)
            return batch, step if known and single else None

    def _pydt_check_optimizer(self) -> None:
        if self.optimizer is None:
            raise ValueError(
                "expected an optimizer, but compile was given None: only a train_step with its own takes None"
            )

    def _pydt_make_slots(self) -> None:
        """Makes slots where a step trains what the run did not begin with: a callback has thawed a layer."""
        store, slots = self._pydt_steps.memory.store, self.optimizer._pydt_slots
        if store is None or slots.store is store or all(variable in slots for variable in store.variables):
            return
        trainable = self.trainable_variables  # type: ignore[attr-defined]
        self.optimizer.ready(self._pydt_with_slots(trainable), store)

    def _pydt_with_slots(self, trainable: Sequence[Any]) -> list[Any]:
        """These, and frozen ones that the optimizer has trained, whose slots it needs where they are trained again.

        In the model's order, whatever is frozen: files hold the slots by their places.
        """
        own = {id(variable) for variable in self.non_trainable_variables}  # type: ignore[attr-defined]
        frozen = [variable for variable in self.optimizer._pydt_slots.variables if id(variable) in own]
        if not frozen:
            return list(trainable)
        places = {id(variable): i for i, variable in enumerate(self.variables)}  # type: ignore[attr-defined]
        return sorted([*trainable, *frozen], key=lambda variable: places.get(id(variable), len(places)))

    def _pydt_planning(self, single: bool) -> AbstractContextManager[None]:
        """Processes agree that all can plan before a run, not before each batch of a user's loop."""
        return nullcontext() if single else strategy.current().planning()

    def _pydt_first_step(self, kind: str, batch: Batch, targets: Targets | None, single: bool) -> StepFunction:
        """The step for the first batch; where patches are drawn, those of all draws of now are planned, too."""
        step = self._pydt_steps.step(kind, batch, targets)
        if kind == "train" and self.split is not None and not single:
            for draw in self.split.draws(self._pydt_steps.memory.state.step):
                self._pydt_steps.step(kind, batch, targets, draw)
        return step

    def _pydt_check_trainable(self, variables: Sequence[Any]) -> None:
        if not variables:
            warnings.warn("the model has no trainable variables: training changes nothing", UserWarning, stacklevel=4)

    # --- single batches --------------------------------------------------------------------------------------------
    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Mapping[int, float] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """One training step on one batch; returns loss and metrics of this batch as `evaluate` does."""
        logs = self._pydt_on_batch("train", x, y, sample_weight, class_weight)
        return logs if return_dict else values_of(logs, self._pydt_order_of(logs))

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Loss and metrics of one batch, in test mode."""
        with limits.limited():
            logs = self._pydt_on_batch("test", x, y, sample_weight)
        return logs if return_dict else values_of(logs, self._pydt_order_of(logs))

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, in test mode."""
        with self._pydt_turn.taken(), limits.limited():
            batch, _ = self._pydt_single("predict", x)
            return tree.map_structure(np.array, self._pydt_predict_batch(batch))

    def _pydt_on_batch(self, kind: str, *data: Any) -> dict[str, Any]:
        """The results of one batch by itself."""
        rouse_threads()  # while Python looks at the batch
        with self._pydt_turn.taken():
            batch, step = self._pydt_single(kind, *data)
            self._pydt_training.is_read = True
            gathering = Gathering(self)
            gathering.begin()
            try:
                return self._pydt_step(kind, batch, step)
            finally:
                gathering.end()

    def _pydt_single(
        self, kind: str, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None
    ) -> tuple[Batch, StepFunction | None]:
        arrays = to_arrays("x", x)
        first = next(leaf for leaf in tree.flatten(arrays) if leaf is not None)
        data = ArrayData(arrays, y, sample_weight, len(first), class_weight=class_weight)
        batch, step = self._pydt_prepare(kind, data, single=True)
        return data.first() if batch is None else batch, step

    # --- plan ------------------------------------------------------------------------------------------------------
    @naming_arguments
    def plan(
        self,
        batch_size: int,
        memory_limit: int | str | None = None,
        variant: str | None = None,
        dump: str | Path | None = None,
        offload: str | Path | bool | None = None,
    ) -> Plan:
        """The plan of a training step with this batch size: its predicted peak, a table of nodes, a picture of memory.

        memory_limit: bytes that the peak may not exceed, or a text such as "1GB": algorithms with smaller workspaces
        are taken, then ever more tensors computed again in backward, the cheapest first.  variant: of the convolutions,
        None for the active one.  dump: a folder into which the graph is written after each pass, as text and
        pictures, with schedule and memory.  offload: a folder, or True for a disk of 2 GB/s (on a GPU "host", or True:
        pinned memory of the host): within `memory_limit`,
        tensors are written there between forward and backward where that takes less time than computing them again; the
        plan tells its predicted time.  Targets have the shapes that the losses of compile read; a model without a
        loss is planned with the sum of its outputs' means.

        Raises ValueError for a model whose input shapes are not known, MemoryLimitError when no plan fits, and OSError
        where the folder cannot be written to.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ValueError(f"batch_size: expected an integer of 1 or more, got {batch_size!r}")
        with self._pydt_turn.taken():
            limit = as_bytes("memory_limit", memory_limit)
            options = {"memory_limit": limit, "variant": variant, "dump": dump, "offload": offload}
            return self._pydt_steps.plan(int(batch_size), self._pydt_targets, **options)

    def largest_batch(self, memory_limit: int | str | None = None, offload: str | Path | bool | None = None) -> int:
        """The largest batch size that `plan` finds a plan for: exact below 32, above to a sixteenth.

        memory_limit: bytes, or a text such as "4GiB"; by default what this process can have now, within the limits of
        its control groups, and what the model has already.  offload: see `plan`.

        Raises MemoryLimitError where one sample is too much, and the errors of `plan`.
        """
        limit = as_bytes("memory_limit", memory_limit)
        if limit is None:
            weights = sum(variable.host_array.nbytes for variable in self.variables)  # type: ignore[attr-defined]
            limit = available(self._pydt_steps.memory, weights)
        return largest_batch(lambda size: self.plan(size, memory_limit=limit, offload=offload))


def values_of(logs: Mapping[str, Any], order: Sequence[str]) -> Any:
    """The results in order, a single one by itself."""
    values = [logs[name] for name in order]
    return values[0] if len(values) == 1 else values
