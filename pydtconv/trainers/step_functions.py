"""Steps of a model as planned functions of a batch's arrays, kept one for each shape of batch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import config, replica, tree
from pydtconv.graph import Executor, Memory, Plan, Updates, build_plan
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.trainers import first_use
from pydtconv.trainers.compiled import Targets
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.tracing import Traced, trace, trace_example
from pydtconv.utils.random import next_seed

#: executors that are kept; the one that was not used for longest goes first
_KEPT = 24


@dataclass
class Results:
    """What a step computed; arrays are views that are valid until the next step of the model.

    loss: of the batch, None for "predict".  losses: of each trained output by its name, without its weight.
    predictions: the outputs, in the model's structure.  applied: whether the optimizer has taken its step meanwhile.
    """

    loss: float | None
    losses: dict[str, float]
    predictions: Any
    applied: bool = False


class StepFunction:
    """An executor, and what goes in and comes out."""

    def __init__(self, executor: Executor, traced: Traced) -> None:
        self.executor = executor
        self.traced = traced

    @property
    def shapes(self) -> Any:
        """The structure of the outputs, as tensors."""
        return self.traced.outputs

    def run(self, x: Sequence[np.ndarray], y: Sequence[Any] = (), weights: Sequence[Any] = ()) -> Results:
        """Runs the step on a batch's arrays, over the flat structures."""
        traced = self.traced
        names, values = (*traced.x, *traced.y, *traced.weights), (*x, *y, *weights)
        inputs = {name: value for name, value in zip(names, values, strict=True) if name is not None}
        found = self.executor.run(inputs)
        return Results(
            loss=float(found["loss"]) if "loss" in found else None,
            losses={name: float(found[result]) for name, result in traced.losses.items()},
            predictions=tree.map_structure(found.__getitem__, traced.predictions),
            applied=self.executor.plan.applies_gradients,
        )


class StepCache:
    """The steps of one model: "train", "test" and "predict"."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.memory = Memory()
        self.memory.state.seed = next_seed()
        self._steps: OrderedDict[Any, StepFunction] = OrderedDict()
        self._values: list[tuple[Any, np.ndarray]] = []
        self._trainable: list[int] | None = None
        self._stores = 0
        self._running = False

    def forget(self) -> None:
        """Drops all steps and the store, for a model that is compiled anew; variables keep their values."""
        self._steps.clear()
        self.memory.store = None
        self.memory.generation += 1
        self._values = []
        self._trainable = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """While a step runs, when nothing else may use the arena."""
        self._running = True
        try:
            yield
        finally:
            self._running = False

    def check_trainable(self) -> None:
        """Drops all steps where other variables are to be trained than those that the steps were traced with."""
        trainable = [id(variable) for variable in self.model.trainable_variables]
        if self._trainable is not None and trainable != self._trainable:
            self.forget()

    def step(self, kind: str, batch: Batch, targets: Targets | None, memory_limit: int | None = None) -> StepFunction:
        """The step for batches of this shape."""
        if self._running:
            raise RuntimeError(
                f"model {self.model.name!r}: a step is running: a layer, a loss or a hook inside it cannot run "
                "another step of the same model"
            )
        if self._stores != ParameterStore.made:
            self.check_values()
        leaves = tree.flatten((batch.x, batch.y, batch.sample_weight))
        shapes = tuple(None if leaf is None else (leaf.shape, leaf.dtype.kind) for leaf in leaves)
        updates = self._updates() if kind == "train" else None
        choice = (
            config.conv_variant(),
            config.conv_precision(),
            config.conv_workspace_limit(),
            config.conv_tuning() > 0,
        )
        threads = config.num_threads()
        key = (kind, shapes, memory_limit, threads, choice, replica.current().size, updates)
        step = self._steps.get(key)
        if step is None:
            traced = trace(self.model, kind, batch, targets)
            with config.hold_num_threads(threads):
                plan = build_plan(
                    traced.graph, memory_limit=memory_limit, slots=self._slots(), updates=updates, tune=first_use.hook()
                )
            updater = self.model.optimizer if plan.applies_gradients else None
            step = self._steps[key] = StepFunction(Executor(plan, self.memory, updater), traced)
            self._note_values()
            if kind == "train":
                self._trainable = [id(variable) for variable in self.model.trainable_variables]
            if len(self._steps) > _KEPT:
                self._steps.popitem(last=False)
        else:
            self._steps.move_to_end(key)
        return step

    def plan(self, batch_size: int, targets: Targets | None, **options: Any) -> Plan:
        """The plan of a training step, not to be run.  options: of `build_plan`.

        Raises ValueError where input shapes are not known.
        """
        graph = trace_example(self.model, batch_size, targets).graph
        return build_plan(graph, slots=self._slots(), updates=self._updates(), **options)

    def _updates(self) -> Updates | None:
        """What the optimizer can do while backward runs, None where gradients are to lie in the store afterwards."""
        optimizer = getattr(self.model, "optimizer", None)
        read = self.memory.keeps_gradients or replica.current().reads_gradients
        if optimizer is None or read or not optimizer.works_in_parts:
            return None
        return Updates(by_rows=optimizer.works_in_rows)

    def _slots(self) -> int:
        optimizer = getattr(self.model, "optimizer", None)
        return 0 if optimizer is None else len(optimizer.all_slots())

    # --- values that others moved ----------------------------------------------------------------------------------
    def check_values(self) -> None:
        """Binds the steps anew where another model, with a flat array of its own, has taken variables of this one."""
        if all(variable.value is value for variable, value in self._values):
            self._stores = ParameterStore.made
            return
        store = self.memory.store
        if store is not None and any(variable.value.base is not store.parameters for variable in store.variables):
            self.forget()
        else:
            self.memory.generation += 1
        self._note_values()

    def _note_values(self) -> None:
        self._stores = ParameterStore.made
        self._values = [(variable, variable.value) for variable in self.model.variables]
