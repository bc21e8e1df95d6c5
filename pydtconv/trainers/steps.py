"""Traces a model into the graph of one step, plans it, and keeps the executors, one for each shape of batch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import config, ops, replica, tree
from pydtconv.graph import Executor, Graph, Memory, Plan, Tensor, Updates, build_plan
from pydtconv.ops.base import Spec
from pydtconv.optimizers import Optimizer
from pydtconv.trainers import first_use
from pydtconv.trainers.arrays import Batch
from pydtconv.trainers.compiled import Output, Targets
from pydtconv.utils.random import next_seed

#: executors that are kept; the one that was not used for longest goes first
_KEPT = 24
_whole = False


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


class Step:
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


class Traced:
    """A graph and the names of what goes in and comes out.

    x, y, weights: names of the inputs over the flat structures, None where the step does not read one.
    predictions: structure of names.  losses: names of the results by the output's name.
    """

    def __init__(self, training: bool) -> None:
        self.graph = Graph(training=training)
        self.x: list[str] = []
        self.y: list[str | None] = []
        self.weights: list[str | None] = []
        self.predictions: Any = None
        self.outputs: Any = None
        self.losses: dict[str, str] = {}

    def inputs(self, kind: str, values: Sequence[Any], dtypes: Sequence[str | None]) -> list[Tensor | None]:
        """Inputs of the values' shapes; none for a value or a dtype of None."""
        names = getattr(self, kind)
        tensors: list[Tensor | None] = []
        for i, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
            if value is None or dtype is None:
                names.append(None)
                tensors.append(None)
            else:
                names.append(f"{kind}{i}")
                tensors.append(self.graph.input(names[-1], Spec(tuple(value.shape), dtype)))
        return tensors


class Steps:
    """The steps of one model: "train", "test" and "predict"."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.memory = Memory()
        self.memory.state.seed = next_seed()
        self._steps: OrderedDict[Any, Step] = OrderedDict()
        self._values: list[tuple[Any, np.ndarray]] = []
        self._trainable: list[int] | None = None

    def forget(self) -> None:
        """Drops all steps and the store, for a model that is compiled anew; variables keep their values."""
        self._steps.clear()
        self.memory.store = None
        self.memory.generation += 1
        self._values = []
        self._trainable = None

    def check_trainable(self) -> None:
        """Drops all steps where other variables are to be trained than those that the steps were traced with."""
        trainable = [id(variable) for variable in self.model.trainable_variables]
        if self._trainable is not None and trainable != self._trainable:
            self.forget()

    def step(self, kind: str, batch: Batch, targets: Targets | None, memory_limit: int | None = None) -> Step:
        """The step for batches of this shape."""
        leaves = tree.flatten((batch.x, batch.y, batch.sample_weight))
        shapes = tuple(None if leaf is None else (leaf.shape, leaf.dtype.kind) for leaf in leaves)
        updates = self._updates() if kind == "train" else None
        choice = (
            config.conv_variant(),
            config.conv_precision(),
            config.conv_workspace_limit(),
            config.conv_tuning() > 0,
        )
        key = (kind, shapes, memory_limit, config.num_threads(), choice, replica.current().size, updates)
        step = self._steps.get(key)
        if step is None:
            traced = self.trace(kind, batch, targets)
            plan = build_plan(
                traced.graph, memory_limit=memory_limit, slots=self._slots(), updates=updates, tune=first_use.hook()
            )
            updater = self.model.optimizer if plan.applies_gradients else None
            step = self._steps[key] = Step(Executor(plan, self.memory, updater), traced)
            self._note_values()
            if kind == "train":
                self._trainable = [id(variable) for variable in self.model.trainable_variables]
            if len(self._steps) > _KEPT:
                self._steps.popitem(last=False)
        else:
            self._steps.move_to_end(key)
        return step

    def _updates(self) -> Updates | None:
        """What the optimizer can do while backward runs, None where gradients are to lie in the store afterwards."""
        optimizer = getattr(self.model, "optimizer", None)
        read = self.memory.keeps_gradients or replica.current().reads_gradients
        if optimizer is None or read or type(optimizer).apply is not Optimizer.apply:
            return None
        return Updates(by_rows=optimizer.works_in_rows) if optimizer.works_in_parts else None

    def _slots(self) -> int:
        optimizer = getattr(self.model, "optimizer", None)
        return 0 if optimizer is None else len(optimizer.all_slots())

    # --- values that others moved ----------------------------------------------------------------------------------
    def check_values(self) -> None:
        """Binds the steps anew where another model, with a flat array of its own, has taken variables of this one."""
        if all(variable.value is value for variable, value in self._values):
            return
        store = self.memory.store
        if store is not None and any(variable.value.base is not store.parameters for variable in store.variables):
            self.forget()
        else:
            self.memory.generation += 1
        self._note_values()

    def _note_values(self) -> None:
        self._values = [(variable, variable.value) for variable in self.model.variables]

    # --- tracing ---------------------------------------------------------------------------------------------------
    def plan(self, batch_size: int, targets: Targets | None, memory_limit: int | None, variant: str | None) -> Plan:
        """The plan of a training step, not to be run.  Raises ValueError where input shapes are not known."""
        x = self._example(batch_size)
        if targets is not None and targets.loss is None:
            targets = None
        batch = Batch(x, None, None, batch_size)
        if targets is not None:
            predictions = self.trace("predict", batch, None).outputs
            batch.y = self._example_targets(predictions, targets)
            targets = Targets(targets.loss, targets.loss_weights)
        graph = self.trace("train", batch, targets).graph
        return build_plan(
            graph, variant=variant, memory_limit=memory_limit, slots=self._slots(), updates=self._updates()
        )

    def _example(self, batch_size: int) -> Any:
        """Inputs of the model's shapes that take no memory."""
        try:
            shapes = self.model.input_shape
        except AttributeError:
            shapes = None
        if shapes is None:
            shapes = getattr(self.model, "_build_shapes", None)
        if shapes is None:
            raise ValueError(f"plan: the input shape of model {self.model.name!r} is not known: call it on data first")

        def zeros(shape: tuple[int | None, ...]) -> np.ndarray:
            if None in shape[1:]:
                raise ValueError(f"plan: expected input shapes that are known but for the batch, got {shape}")
            return _empty((batch_size, *shape[1:]), self._input_dtype())

        return tree.map_shape_structure(zeros, shapes)

    def _example_targets(self, predictions: Any, targets: Targets) -> Any:
        flat = tree.flatten(predictions)
        probe = Targets(targets.loss, None)
        probe.build(predictions, self._output_names(), None)
        arrays = []
        for output, prediction in zip(probe.outputs, flat, strict=True):
            sparse = output.loss is not None and output.loss.takes_labels
            shape = prediction.shape[:-1] if sparse else prediction.shape
            arrays.append(None if output.loss is None else _empty(shape, "int32" if sparse else prediction.dtype))
        return tree.pack_sequence_as(predictions, arrays)

    def trace(self, kind: str, batch: Batch, targets: Targets | None) -> Traced:
        """The graph of a step.  kind "predict" has no losses; "train" has a loss to differentiate.

        targets None traces the sum of the outputs' means as the loss.
        """
        traced = Traced(training=kind == "train")
        with traced.graph:
            flat_x = tree.flatten(batch.x)
            tensors = traced.inputs("x", flat_x, [self._input_dtype()] * len(flat_x))
            x = tree.pack_sequence_as(batch.x, tensors)
            y_pred = self.model(x, training=kind == "train")
            traced.outputs, outputs = y_pred, tree.flatten(y_pred)
            for i, output in enumerate(outputs):
                traced.graph.outputs[f"prediction{i}"] = output
            traced.predictions = tree.pack_sequence_as(y_pred, [f"prediction{i}" for i in range(len(outputs))])
            if kind == "predict":
                return traced
            if targets is None:
                traced.graph.loss = ops.WeightedSum()(*(ops.mean(output) for output in outputs))
                return traced
            self._trace_losses(kind, batch, targets, traced, x, y_pred)
        return traced

    def _trace_losses(self, kind: str, batch: Batch, targets: Targets, traced: Traced, x: Any, y_pred: Any) -> None:
        outputs = tree.flatten(y_pred)
        if not targets.outputs:
            targets.build(y_pred, self._output_names(), batch.y)
        arrays = targets.arrange(batch.y, "y")
        weights = targets.weights(batch.sample_weight)
        overridden = self.model.overrides("compute_loss")
        dtypes, weight_dtypes = [], []
        for output, tensor, array in zip(targets.outputs, outputs, arrays, strict=True):
            read = output.loss is not None or overridden
            dtypes.append(_target_dtype(output.loss, tensor, array) if read else None)
            weight_dtypes.append(tensor.dtype if read else None)
        y = traced.inputs("y", arrays, dtypes)
        w = traced.inputs("weights", weights, weight_dtypes)
        found: dict[str, Tensor] = {}
        if overridden:
            with _undivided():
                total = self.model.compute_loss(
                    x=x,
                    y=_packed(batch.y, y, targets),
                    y_pred=y_pred,
                    sample_weight=None if batch.sample_weight is None else _packed(batch.sample_weight, w, targets),
                    training=kind == "train",
                )
            total = None if total is None else portion_of(total)
        else:
            found = losses_of(targets, y, outputs, w)
            total = self.model.total_loss(targets, found)
        if total is None or tuple(total.shape) != ():
            told = "None" if total is None else f"shape {tuple(total.shape)}"
            raise ValueError(f"loss: expected a scalar for each batch, got {told}; a reduction must not be 'none'")
        graph = traced.graph
        graph.outputs["loss"] = total
        for name, loss in found.items():
            traced.losses[name] = f"loss_{name}"
            graph.outputs[f"loss_{name}"] = loss
        if kind == "train":
            scale = getattr(self.model.optimizer, "loss_scale_factor", None)
            graph.loss = total if not scale else ops.WeightedSum((float(scale),))(total)

    def _output_names(self) -> list[str] | None:
        try:
            return list(self.model.output_names)
        except AttributeError:
            return None

    def _input_dtype(self) -> str:
        dtype = getattr(self.model, "compute_dtype", None)
        return dtype if dtype in ("float32", "float64") else config.floatx()


def losses_of(targets: Targets, y: Sequence[Any], y_pred: Sequence[Any], weights: Sequence[Any]) -> dict[str, Tensor]:
    """The loss of each trained output by the output's name, without its weight."""
    found = {}
    for output, y_true, prediction, weight in zip(targets.outputs, y, y_pred, weights, strict=True):
        if output.loss is None:
            continue
        if y_true is None:
            raise ValueError(f"y: expected targets of output {output.name!r}, which has a loss; got None")
        try:
            found[output.name] = portion_of(output.loss(y_true, prediction, weight), output, weight)
        except ValueError as error:
            raise ValueError(f"loss {output.loss.name!r} of output {output.name!r}: {error}") from error
    return found


@contextmanager
def _undivided() -> Iterator[None]:
    """While a loss is traced of which only the total is divided among processes."""
    global _whole
    _whole = True
    try:
        yield
    finally:
        _whole = False


def portion_of(loss: Tensor, output: Output | None = None, weight: Any = None) -> Tensor:
    """This process's part of the loss of a batch that several processes share, by what the loss is divided by."""
    if replica.current().size == 1 or _whole:
        return loss
    reduction = getattr(output.loss, "reduction", None) if output else None
    if reduction == "sum":
        return loss
    weighted = reduction == "mean_with_sample_weight" and weight is not None
    return ops.Portion(f"weights of {output.name}" if output and weighted else "samples")(loss)


def _empty(shape: Sequence[int | None], dtype: str) -> np.ndarray:
    """An array of this shape that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), tuple(shape))  # type: ignore[arg-type]


def _target_dtype(loss: Any, prediction: Tensor, array: Any) -> str | None:
    """The dtype in which a loss reads its targets: integers as they are where they stand for classes."""
    if array is None:
        return None
    if loss is not None and loss.takes_labels and array.dtype.kind in "iub":
        return "int64" if array.dtype.itemsize > 4 else "int32"
    return prediction.dtype


def _packed(structure: Any, flat: Sequence[Any], targets: Targets) -> Any:
    """Flat values over the outputs in the structure that the data has."""
    if isinstance(structure, dict):
        return dict(zip(targets.names, flat, strict=True))
    if isinstance(structure, (list, tuple)):
        return list(flat)
    return flat[0]
