"""Steps of a model as planned functions of a batch's arrays, kept one for each shape of batch."""

from __future__ import annotations

import operator
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import config, devices, replica, tree
from pydtconv.graph import Executor, Memory, MemoryLimitError, Plan, Updates, build_plan
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers import settings
from pydtconv.layers.eager import AddedLosses
from pydtconv.trainers import first_use, offloading
from pydtconv.trainers.compiled import Targets
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.limits import Limits
from pydtconv.trainers.metric_updates import Update
from pydtconv.trainers.tracing import Traced, loss_scale, trace, trace_example
from pydtconv.utils.random import next_seed
from pydtconv.utils.results import with_mask

#: executors that are kept; the one that was not used for longest goes first
_KEPT = 24
#: elements of a variable that are compared where the code of a step reads it
_LARGEST = 256


@dataclass
class Results:
    """What a step computed; arrays are views that are valid until the next step of the model.

    loss: of the batch, None for "predict".  losses: of each trained output by its name, without its weight.
    predictions: the outputs, in the model's structure.  applied: whether the optimizer has taken its step meanwhile.
    updates: calls of metrics that are to follow.  added: what layers have added to the loss, and these layers.
    """

    loss: float | None
    losses: dict[str, float]
    predictions: Any
    applied: bool = False
    updates: Sequence[Update] = ()
    added: AddedLosses | None = None


def _what_is_in(variable: Variable) -> Any:
    """What tells whether code that reads the value would read another one."""
    return variable.array.tobytes() if variable.array.size <= _LARGEST else variable.version


def _kind(dtype: np.dtype) -> str:
    """What a step is traced for: floats of any width are read alike."""
    return "f" if dtype.kind == "f" else dtype.str


def _shapes_of(batch: Batch) -> tuple[Any, ...] | None:
    """Shapes of inputs and targets; None where they are of other structures than one array each."""
    x, y = batch.x, batch.y
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray | None):
        return x.shape, None if y is None else y.shape
    return None


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
        inputs = {name: self._part(name, value) for name, value in zip(names, values, strict=True) if name is not None}
        found = self.executor.run(inputs)
        return Results(
            loss=float(found["loss"]) if "loss" in found else None,
            losses={name: float(found[result]) for name, result in traced.losses.items()},
            predictions=tree.map_structure(self._prediction(found), traced.predictions),
            applied=self.executor.plan.applies_gradients,
            updates=[each.filled({**inputs, **found}) for each in traced.updates],
            added=AddedLosses(traced.owners, [found[name].copy() for name in traced.added]) if traced.added else None,
        )

    def _prediction(self, found: Mapping[str, np.ndarray]) -> Callable[[str], np.ndarray]:
        """Gives a prediction by its name, with its mask where it has one and metrics will read it."""
        if not any(self.traced.masks):
            return found.__getitem__
        return lambda name: with_mask(found[name], found.get(name.replace("prediction", "mask")))

    def _part(self, name: str, value: Any) -> Any:
        """What the step reads of a batch's array: this process's part, where images are cut."""
        placed = self.executor.plan.graph.placements.get(name)
        return value if placed is None or np.shape(value) != placed.shape else value[placed.slices]


#: a variable's array on the host, and what has its values where a device does
_ARRAY, _MIRROR = operator.attrgetter("_value"), operator.attrgetter("mirror")


class StepCache:
    """The steps of one model: "train", "test" and "predict"."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.memory = Memory()
        self.memory.state.seed = next_seed()
        self._steps: OrderedDict[Any, StepFunction] = OrderedDict()
        #: variables whose values the code of steps has read, by their ids
        self._read: dict[int, Variable] = {}
        self._values: tuple[list[Any], list[np.ndarray]] = [], []
        self._trainable: list[Variable] | None = None
        self._moved = 0
        #: the process whose step runs, 0 while none does; not this one in a process that was forked meanwhile
        self._running = 0
        #: the same of a step that the model's class writes, within which others may run
        self._running_own = 0
        self._planned_anew: set[Any] = set()
        self._prepared: dict[str, tuple[Any, ...]] = {}

    @property
    def plans(self) -> list[Plan]:
        """Of the steps that are kept; that which was used last stands last."""
        return [step.executor.plan for step in self._steps.values()]

    def forget(self) -> None:
        """Drops all steps and the store, for a model that is compiled anew; variables keep their values."""
        self._steps.clear()
        self.memory.release_variables()
        self.memory.store = None
        self.memory.generation += 1
        self._values = [], []
        self._trainable = None
        self._prepared.clear()

    def has_prepared(self, kind: str, batch: Batch) -> bool:
        """Whether the last batch of this kind that was prepared is, like this one, of arrays of these shapes."""
        known = self._prepared.get(kind)
        return known is not None and known[0] == _shapes_of(batch)

    def was_made_with(self, kind: str, step: StepFunction, made_with: tuple[Any, ...]) -> bool:
        """Whether that batch has this step, and losses, metrics and optimizer are those of then."""
        known = self._prepared.get(kind)
        return known is not None and all(map(operator.is_, (known[1], *known[2]), (step, *made_with)))

    def note_prepared(self, kind: str, batch: Batch, step: StepFunction, made_with: tuple[Any, ...]) -> None:
        """Notes that all that a batch of this kind needs has been made; only where it is of plain arrays."""
        shapes = _shapes_of(batch)
        if shapes is not None:
            self._prepared[kind] = shapes, step, made_with

    def use_device(self) -> None:
        """Drops all steps and the memory where the active device is another one; variables keep their values."""
        name = config.device()
        if name == self.memory.device.name:
            return
        if self._running:
            raise RuntimeError(f"model {self.model.name!r}: a step is running on device {self.memory.device.name}")
        device = devices.get(name)
        self.forget()
        old, self.memory = self.memory, Memory(device)
        self.memory.state, self.memory.hooks = old.state, old.hooks
        self.memory.keeps_gradients = old.keeps_gradients
        offloading.release(old)

    @contextmanager
    def running(self) -> Iterator[None]:
        """While a step runs, when nothing else may use the arena."""
        self._running = os.getpid()
        try:
            yield
        finally:
            self._running = 0

    @contextmanager
    def running_own(self) -> Iterator[None]:
        """While a step runs that the model's class writes."""
        self.check_forked()
        before, self._running_own = self._running_own, os.getpid()
        try:
            yield
        finally:
            self._running_own = before

    def check_forked(self) -> None:
        """Raises RuntimeError in a process that was forked within a step."""
        if not {self._running, self._running_own} <= {0, os.getpid()}:
            raise RuntimeError(
                f"model {self.model.name!r}: this process was forked while another thread ran a step of the model, "
                "whose weights may be half updated: fork between two steps, or start processes by spawn"
            )

    def trains(self, variables: Sequence[Variable]) -> bool:
        """Whether these are the variables that the training steps were traced with."""
        known = self._trainable
        return known is not None and len(known) == len(variables) and all(map(operator.is_, known, variables))

    def check_trainable(self, variables: Sequence[Variable]) -> None:
        """Drops all steps where other variables are to be trained than those that the steps were traced with."""
        if self._trainable is not None and not self.trains(variables):
            self.forget()

    def step(
        self,
        kind: str,
        batch: Batch,
        targets: Targets | None,
        memory_limit: int | None = None,
        offload: str | None = None,
        draw: int | None = None,
    ) -> StepFunction:
        """The step for batches of this shape.

        offload: a folder that training may write tensors to.  Raises OSError where it has no room for them.
        draw: the number of the scheme where patches are drawn, None for that of this step.
        """
        tracing.settle_outside()
        self.use_device()
        self._check_idle()
        self.check_values()
        folder = offload if kind == "train" and memory_limit is not None else None
        draw = self.draw(kind, draw)
        threads = config.num_threads()
        updates = self._updates() if kind == "train" else None
        asked = (*self._asked(kind, batch), memory_limit, folder, draw, updates)
        key = (*asked, settings.of_model(self.model))
        self.check_device(kind, folder)
        step = before = self._steps.get(key)
        if folder is not None and step is not None:
            step.executor.reserve()
            step = offloading.kept(step, self._planned_anew, key)
        if step is not None:
            self._steps.move_to_end(key)
            return step
        earlier = None if before is None else before.executor.plan
        with config.hold_num_threads(threads):
            traced = self._traced(kind, batch, targets, draw)
            self._read.update({id(variable): variable for variable in traced.graph.read_values or ()})
            asked = (*self._asked(kind, batch), memory_limit, folder, draw, updates)
            key = (*asked, settings.of_model(self.model))  # which a call may have set itself
            options = {"slots": self._slots(), "state_bytes": self._state_bytes(), "updates": updates}
            plan = self.planned(traced.graph, Limits(memory_limit, folder), earlier, **options)
        if before is not None and plan is earlier:
            return before
        return self._keep(key, kind, plan, traced)

    def _check_idle(self) -> None:
        """Raises RuntimeError while a step of the model runs, and in a process that was forked during one."""
        self.check_forked()
        if self._running:
            raise RuntimeError(
                f"model {self.model.name!r}: a step is running: a layer, a loss or a hook inside it cannot run "
                "another step of the same model"
            )

    def draw(self, kind: str, draw: int | None = None) -> int | None:
        """The number of the scheme by which patches are drawn, None where none are."""
        if kind != "train" or self.model.split is None:
            return None
        return self.model.split.draw(self.memory.state.seed, self.memory.state.step) if draw is None else draw

    def _asked(self, kind: str, batch: Batch) -> tuple[Any, ...]:
        """What a step depends on besides memory and settings of the model: equal ones share a step."""
        given = (batch.x, batch.y, batch.sample_weight)
        shapes = tuple(None if leaf is None else (leaf.shape, _kind(leaf.dtype)) for leaf in tree.flatten(given))
        scale = loss_scale(self.model) if kind == "train" else None
        here, read = replica.current(), tuple(map(_what_is_in, self._read.values()))
        return kind, tree.layout(given), shapes, scale, config.of_kernels(), here.size, here.partition, read

    def _traced(self, kind: str, batch: Batch, targets: Targets | None, draw: int | None) -> Traced:
        """The model's graph for a batch.  Raises NotImplementedError for what several processes cannot do with it."""
        traced, here = trace(self.model, kind, batch, targets), replica.current()
        traced.graph.partition = here.partition
        assigned = next((each.metric for each in traced.updates if isinstance(each.metric, Variable)), None)
        if here.size > 1 and assigned is not None:
            raise NotImplementedError(
                f"variable {assigned.path!r}: assign in a layer's call, as in that of batch normalization with renorm "
                f"or a mask, expects one process, got {here.size}: leave these out, or assign in a train_step"
            )
        if here.partition is not None and traced.updates:
            raise NotImplementedError(
                f"metric {traced.updates[0].metric.name!r}: update_state in compute_loss or in a layer's call "
                "expects whole images in each process, got images that are cut"
            )
        if kind == "train":
            traced.graph.split, traced.graph.split_draw = self.model.split, draw
        return traced

    def _keep(self, key: Any, kind: str, plan: Plan, traced: Traced) -> StepFunction:
        """A new step, kept in the place of that which was not used for longest."""
        updater = self.model.optimizer if plan.applies_gradients else None
        step = self._steps[key] = StepFunction(Executor(plan, self.memory, updater), traced)
        self._note_values()
        if kind == "train":
            self._trainable = list(self.model.trainable_variables)
        if len(self._steps) > _KEPT:
            self._steps.popitem(last=False)
        return step

    def planned(self, graph: Graph, within: Limits, earlier: Plan | None = None, **options: Any) -> Plan:
        """The plan within the limits, and within what a device has.  Raises MemoryError where that is too little.

        earlier: see `offloading.planned`.  options: of `build_plan`.
        """
        options["tune"] = first_use.hook(self.memory.device)
        room = self.memory.room()
        if room is None or (within.memory is not None and within.memory <= room):
            return offloading.planned(graph, within.offload, earlier, memory_limit=within.memory, **options)
        try:
            return offloading.planned(graph, within.offload, earlier, memory_limit=room, **options)
        except MemoryLimitError as error:
            raise MemoryError(
                f"device {self.memory.device.name}: expected at least {error.smallest_bytes} bytes, the smallest plan "
                f"of this model and batch size, got {room} that it can have"
            ) from None

    def check_device(self, kind: str, folder: str | None) -> None:
        """Raises NotImplementedError for what devices with memory of their own do not do, ValueError for a folder that
        is not this device's.
        """
        name = self.memory.device.name
        if folder is not None and (folder == offloading.HOST) == self.memory.device.is_host:
            raise ValueError(f"offload: expected what device {name} offloads to, got {folder!r}")
        if self.memory.device.is_host:
            return
        if replica.current().size > 1:
            raise NotImplementedError(f"device {name}: expected one process, got {replica.current().size}")
        optimizer = getattr(self.model, "optimizer", None)
        if kind == "train" and optimizer is not None:
            optimizer.check_device(name)

    def plan(self, batch_size: int, targets: Targets | None, **options: Any) -> Plan:
        """The plan of a training step, not to be run.  options: of `build_plan`.

        Raises ValueError where input shapes are not known.
        """
        offload = offloading.of_plan(options.pop("offload", None), options.get("memory_limit"))
        graph = trace_example(self.model, batch_size, targets).graph
        graph.partition = replica.current().partition
        graph.split = self.model.split
        slots, state_bytes, updates = self._slots(), self._state_bytes(), self._updates()
        return build_plan(graph, slots=slots, state_bytes=state_bytes, updates=updates, offload=offload, **options)

    def release_scratch_file(self) -> None:
        """Ends what training with offload needed besides memory."""
        offloading.release(self.memory)

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

    def _state_bytes(self) -> int:
        optimizer = getattr(self.model, "optimizer", None)
        return 0 if optimizer is None else int(optimizer.state_bytes(self.model.trainable_variables))

    # --- values that others moved ----------------------------------------------------------------------------------
    def check_values(self) -> None:
        """Binds the steps anew where another model, with a flat array of its own, has taken variables of this one."""
        tracing.settle_outside()
        moved = Variable.moved
        if self._moved == moved:
            return
        variables, values = self._values
        if self.memory.device.is_host and any(map(_MIRROR, variables)):
            for variable in variables:
                _ = variable.value  # which a device has
        if all(map(operator.is_, map(_ARRAY, variables), values)):
            self._moved = moved
            return
        store = self.memory.store
        if store is not None and any(_ARRAY(each).base is not store.parameters for each in store.variables):
            self.forget()
        else:
            self.memory.generation += 1
        self._note_values()

    def _note_values(self) -> None:
        self._moved = Variable.moved
        variables = list(self.model.variables)
        self._values = variables, list(map(_ARRAY, variables))
