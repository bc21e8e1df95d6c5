"""Steps of a model as planned functions of a batch's arrays, kept one for each shape of batch."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import config, devices, replica, tree
from pydtconv.engine import Bound, Workspace, limits, offloading
from pydtconv.engine.planning import updates_of, updating
from pydtconv.graph import Executor, Memory, MemoryLimitError, Plan, build_plan
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.passes.split import DRAWS
from pydtconv.layers.base import attribute_values
from pydtconv.layers.base.array_calls import AddedLosses
from pydtconv.support.last_used import LastUsed
from pydtconv.support.random import next_seed
from pydtconv.support.results import with_mask
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.dense_columns import put_on
from pydtconv.trainers.metric_updates import Update
from pydtconv.trainers.targets import Targets
from pydtconv.trainers.tracing import Traced, loss_scale, prepare_recording, trace, trace_example

#: steps that are kept
_KEPT = 24
#: losses of a step in which no layer adds any
_NONE = AddedLosses((), ())
#: elements of a variable that are compared where the code of a step reads it
_LARGEST = 256


@dataclass
class Results:
    """What a step computed; arrays are views that are valid until the next step of the model.

    loss: of the batch, None for "predict".  losses: of each trained output by its name, without its weight.
    predictions: the outputs, in the model's structure.  applied: whether the optimizer has taken its step meanwhile,
    or has none to take, as nothing was trained.
    updates: calls of metrics that are to follow.  added: what layers have added to the loss, and these layers.
    """

    loss: float | None
    losses: dict[str, float]
    predictions: Any
    added: AddedLosses
    applied: bool = False
    updates: Sequence[Update] = ()

    def assign_trained(self) -> None:
        """Assigns to trained variables what a call has assigned: the step trains that."""
        rest = []
        for update in self.updates:
            if isinstance(update.metric, Variable) and update.metric.trainable:
                update.run(1.0)
            else:
                rest.append(update)
        self.updates = rest


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
    """A plan in the model's memory, and what goes in and comes out."""

    def __init__(self, bound: Bound, traced: Traced) -> None:
        self.bound = bound
        self.traced = traced

    @property
    def executor(self) -> Executor:
        return self.bound.executor

    @property
    def shapes(self) -> Any:
        """The structure of the outputs, as tensors."""
        return self.traced.outputs

    def run(self, x: Sequence[np.ndarray], y: Sequence[Any] = (), weights: Sequence[Any] = ()) -> Results:
        """Runs the step on a batch's arrays, over the flat structures."""
        traced = self.traced
        names, values = (*traced.x, *traced.y, *traced.weights), (*x, *y, *weights)
        inputs = {name: value for name, value in zip(names, values, strict=True) if name is not None}
        found = self.bound.run(inputs)
        return Results(
            loss=float(found["loss"]) if "loss" in found else None,
            losses={name: float(found[result]) for name, result in traced.losses.items()},
            predictions=tree.map_structure(self._prediction(found), traced.predictions),
            applied=self.executor.plan.applies_gradients or not self.executor.plan.gradient_order,
            updates=[each.filled({**inputs, **found}) for each in traced.updates],
            added=AddedLosses(traced.owners, [found[name].copy() for name in traced.added]) if traced.added else _NONE,
        )

    def _prediction(self, found: Mapping[str, np.ndarray]) -> Callable[[str], np.ndarray]:
        """Gives a prediction by its name, with its mask where it has one and metrics will read it."""
        if not any(self.traced.masks):
            return found.__getitem__
        return lambda name: with_mask(found[name], found.get(name.replace("prediction", "mask")))


class StepCache:
    """The steps of one model: "train", "test" and "predict".

    workspace: where they run, and those that the model's class writes itself.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.workspace = self._workspace_of(Memory())
        self.memory.state.seed = next_seed()
        self._steps: LastUsed[StepFunction] = LastUsed(_KEPT)
        #: variables whose values the code of steps has read, by their ids
        self._read: dict[int, Variable] = {}
        self._trainable: list[Variable] | None = None
        self._planned_anew: set[Any] = set()
        self._prepared: dict[str, tuple[Any, ...]] = {}

    def _workspace_of(self, memory: Memory) -> Workspace:
        return Workspace(memory, self.model.name, functools.partial(prepare_recording, self.model))

    @property
    def memory(self) -> Memory:
        """What all steps share."""
        return self.workspace.host

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
        self.workspace.check_idle()
        device = devices.get(name)
        self.forget()
        old, memory = self.memory, Memory(device)
        memory.state, memory.hooks, memory.keeps_gradients = old.state, old.hooks, old.keeps_gradients
        self.workspace = self._workspace_of(memory)
        offloading.release(old)

    def trains(self, variables: Sequence[Variable]) -> bool:
        """Whether these are the variables that the training steps were traced with."""
        known = self._trainable
        return known is not None and len(known) == len(variables) and all(map(operator.is_, known, variables))

    def check_trainable(self, variables: Sequence[Variable]) -> None:
        """Drops all steps where other variables are to be trained than those that the steps were traced with."""
        if self._trainable is not None and not self.trains(variables):
            self.forget()

    def step(self, kind: str, batch: Batch, targets: Targets | None, draw: int | None = None) -> StepFunction:
        """The step for batches of this shape, within the limits that hold now.

        draw: the number of the scheme where patches are drawn, None for that of this step.  Raises OSError where the
        folder for what is offloaded has no room.
        """
        tracing.settle_outside()
        self.use_device()
        self.workspace.check_idle()
        draw = self.draw(kind, draw)
        threads = config.num_threads()
        within = self._within(kind)
        self.check_device(kind, within.offload)
        self.model._pydt_note_texts(batch.x)
        asked = (*self._asked(kind, batch), within, draw)
        key = (*asked, attribute_values.of_model(self.model))
        step = before = self._steps.get(key)
        if within.offload is not None and step is not None:
            step.executor.reserve()
            step = offloading.kept(step, self._planned_anew, key)
        if step is not None:
            step.bound.check()
            return step
        with config.hold_num_threads(threads):
            traced = self._traced(kind, batch, targets, draw)
            self._read.update({id(variable): variable for variable in traced.graph.read_values or ()})
            asked = (*self._asked(kind, batch), within, draw)
            key = (*asked, attribute_values.of_model(self.model))  # which a call may have set itself
            try:
                bound = self.workspace.bind(
                    traced.graph,
                    self.memory,
                    self.optimizer,
                    self.model.trainable_variables,
                    None if before is None else before.bound,
                )
            except MemoryLimitError:
                if draw is None or draw < DRAWS:
                    raise
                step = self.step(kind, batch, targets, draw - DRAWS)  # the scheme in whose place it would have come
                self._steps.put(key, step)
                return step
        if before is not None and bound is before.bound:
            return before
        step = StepFunction(bound, traced)
        self._steps.put(key, step)
        if kind == "train":
            self._trainable = list(self.model.trainable_variables)
        return step

    @property
    def optimizer(self) -> Any:
        return getattr(self.model, "optimizer", None)

    def _within(self, kind: str) -> limits.Limits:
        """The limits that hold now, for a step of this kind: only training offloads."""
        memory, folder = limits.current()
        return limits.Limits(memory, folder if kind == "train" and memory is not None else None)

    def draw(self, kind: str, draw: int | None = None, renewed: bool = True) -> int | None:
        """The number of the scheme by which patches are drawn, None where none are.  renewed: see `Split.draw`."""
        if kind != "train" or self.model.split is None:
            return None
        state = self.memory.state
        return self.model.split.draw(state.seed, state.step, renewed) if draw is None else draw

    def _asked(self, kind: str, batch: Batch) -> tuple[Any, ...]:
        """What a step depends on besides memory and settings of the model: equal ones share a step."""
        given = (batch.x, batch.y, batch.sample_weight)
        shapes = tuple(None if leaf is None else (leaf.shape, _kind(leaf.dtype)) for leaf in tree.flatten(given))
        scale = loss_scale(self.model) if kind == "train" else None
        here, read = replica.current(), tuple(map(_what_is_in, self._read.values()))
        updates = updates_of(self.optimizer, self.memory) if kind == "train" else None
        return kind, tree.layout(given), shapes, scale, config.of_kernels(), here.size, here.partition, read, updates

    def _traced(self, kind: str, batch: Batch, targets: Targets | None, draw: int | None) -> Traced:
        """The model's graph for a batch.  Raises NotImplementedError for what several processes cannot do with it."""
        traced, here = trace(self.model, kind, batch, targets), replica.current()
        put_on(traced.graph, self.model, here.partition)
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
        if kind == "train" and self.optimizer is not None:
            self.optimizer.check_device(name)

    def plan(self, batch_size: int, targets: Targets | None, **options: Any) -> Plan:
        """The plan of a training step, not to be run.  options: of `build_plan`.

        Raises ValueError where input shapes are not known, NotImplementedError for state that cannot be sharded.
        """
        if replica.current().shard and self.optimizer is not None:
            self.optimizer.check_shards(self.model.trainable_variables)
        offload = offloading.of_plan(options.pop("offload", None), options.get("memory_limit"))
        graph = trace_example(self.model, batch_size, targets).graph
        put_on(graph, self.model, replica.current().partition)
        graph.split = self.model.split
        options |= updating(self.optimizer, self.model.trainable_variables, self.memory)
        return build_plan(graph, offload=offload, **options)

    def release_scratch_file(self) -> None:
        """Ends what training with offload needed besides memory."""
        offloading.release(self.memory)
