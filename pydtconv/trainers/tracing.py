"""Traces a model into the graph of one step: inputs, predictions, losses."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pydtconv import config, ops, replica, tree
from pydtconv.dtypes import real
from pydtconv.graph import Graph, Tensor
from pydtconv.ops.base import Spec
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.metric_updates import Update, updates_of
from pydtconv.trainers.targets import Output, Targets


class _Division(threading.local):
    """whole: while this thread traces a loss of which only the total is divided among processes."""

    whole = False


_division = _Division()


class Traced:
    """A graph and the names of what goes in and comes out.

    x, y, weights: names of the inputs over the flat structures, None where the step does not read one.
    predictions: structure of names.  losses: names of the results by the output's name.  updates: calls of metrics.
    masks: of each output whether it has one, which is a result, too, where there are losses.
    added: names of the results that layers have added to the loss.  owners: these layers.
    """

    def __init__(self, training: bool) -> None:
        self.graph = Graph(training=training, device=config.device())
        self.graph.read_values = []
        self.x: list[str] = []
        self.y: list[str | None] = []
        self.weights: list[str | None] = []
        self.predictions: Any = None
        self.outputs: Any = None
        self.losses: dict[str, str] = {}
        self.updates: list[Update] = []
        self.masks: list[bool] = []
        self.added: list[str] = []
        self.owners: list[Any] = []

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


def trace(model: Any, kind: str, batch: Batch, targets: Targets | None) -> Traced:
    """The graph of a step.  kind "predict" has no losses; "train" has a loss to differentiate.

    targets None traces the sum of the outputs' means as the loss.
    """
    traced = Traced(training=kind == "train")
    with traced.graph:
        flat_x = tree.flatten(batch.x)
        tensors = traced.inputs("x", flat_x, _input_dtypes(model, batch.x))
        x = tree.pack_sequence_as(batch.x, tensors)
        y_pred = tree.map_structure(_as_real, model(x, training=kind == "train"))
        traced.outputs, outputs = y_pred, tree.flatten(y_pred)
        traced.masks = [getattr(output, "_keras_mask", None) is not None for output in outputs]
        for i, output in enumerate(outputs):
            traced.graph.outputs[f"prediction{i}"] = output
            if kind != "predict" and traced.masks[i]:
                traced.graph.outputs[f"mask{i}"] = _as_real(output._keras_mask)
        traced.predictions = tree.pack_sequence_as(y_pred, [f"prediction{i}" for i in range(len(outputs))])
        _note_added(traced, whole=replica.current().partition is None and model.split is None)
        if kind == "predict":
            traced.updates = updates_of(traced.graph)
            return traced
        if targets is None:
            traced.graph.loss = ops.WeightedSum()(*(ops.mean(output) for output in outputs))
            return traced
        _trace_losses(model, kind, batch, targets, traced, x, y_pred)
        traced.updates = updates_of(traced.graph)
    return traced


def own_loss(model: Any, training: bool, **arguments: Any) -> Any:
    """What the `compute_loss` of a subclass gives, which may do without the argument `training`."""
    parameters = inspect.signature(model.compute_loss).parameters
    if "training" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        arguments["training"] = training
    return model.compute_loss(**arguments)


def _note_added(traced: Traced, whole: bool) -> None:
    """Makes results of what layers have added to the loss, for `losses`.  whole: whether images are not cut."""
    for i, tensor in enumerate(traced.graph.losses if whole else ()):
        traced.added.append(f"added{i}")
        traced.graph.outputs[traced.added[-1]] = ops.cast(tensor, real(tensor.dtype))
    traced.owners = list(traced.graph.loss_owners) if whole else []


def _trace_losses(model: Any, kind: str, batch: Batch, targets: Targets, traced: Traced, x: Any, y_pred: Any) -> None:
    outputs = tree.flatten(y_pred)
    overridden = model._pydt_overrides("compute_loss")
    if not targets.outputs:
        targets.build(y_pred, output_names(model), batch.y, overridden)
    arrays = targets.fed(batch.y)
    weights = targets.weights(batch.sample_weight)
    dtypes, weight_dtypes = [], []
    for output, tensor, array in zip(targets.outputs, outputs, targets.arrange(batch.y, "y"), strict=True):
        read = output.is_read or overridden
        dtypes.append(_target_dtype(output.loss, tensor, array) if read else None)
        weight_dtypes.append(tensor.dtype if read else None)
    if targets.are_own(batch.y):
        dtypes = [_own_dtype(outputs[0], array) for array in arrays]
    y = traced.inputs("y", arrays, dtypes)
    w = traced.inputs("weights", weights, weight_dtypes)
    found: dict[str, Tensor] = {}
    if overridden:
        with undivided():
            total = own_loss(
                model,
                kind == "train",
                x=x,
                y=tree.pack_sequence_as(batch.y, y) if targets.are_own(batch.y) else _packed(batch.y, y, targets),
                y_pred=y_pred,
                sample_weight=None if batch.sample_weight is None else _packed(batch.sample_weight, w, targets),
            )
        total = None if total is None else _as_real(portion_of(total))
    else:
        found = losses_of(targets, y, outputs, w)
        total = model._pydt_total_loss(targets, found)
    if total is None or tuple(total.shape) != ():
        told = "None" if total is None else f"shape {tuple(total.shape)}"
        raise ValueError(f"loss: expected a scalar for each batch, got {told}; a reduction must not be 'none'")
    graph = traced.graph
    graph.outputs["loss"] = total
    for name, loss in found.items():
        traced.losses[name] = f"loss_{name}"
        graph.outputs[f"loss_{name}"] = loss
    if kind == "train":
        graph.loss = total if model.optimizer is None else model.optimizer.scale_loss(total)


def _target_dtype(loss: Any, prediction: Tensor, array: Any) -> str | None:
    """The dtype in which a loss reads its targets: integers as they are where they stand for classes."""
    if array is None:
        return None
    if loss is not None and loss.takes_labels and array.dtype.kind in "iub":
        return "int64" if array.dtype.itemsize > 4 else "int32"
    return prediction.dtype


def _own_dtype(prediction: Tensor, array: Any) -> str | None:
    """The dtype of targets that do not go with the outputs: integers stay integers."""
    if array is None or array.dtype.kind not in "iu":
        return None if array is None else prediction.dtype
    return "int64" if array.dtype.itemsize > 4 else "int32"


def _packed(structure: Any, flat: Sequence[Any], targets: Targets) -> Any:
    """Flat values over the outputs in the structure that the data has."""
    if isinstance(structure, dict):
        return dict(zip(targets.names, flat, strict=True))
    if isinstance(structure, (list, tuple)):
        return list(flat)
    return flat[0]


def losses_of(targets: Targets, y: Sequence[Any], y_pred: Sequence[Any], weights: Sequence[Any]) -> dict[str, Tensor]:
    """The loss of each trained output by the output's name, without its weight."""
    found = {}
    for output, y_true, prediction, weight in zip(targets.outputs, y, y_pred, weights, strict=True):
        if output.loss is None:
            continue
        if y_true is None:
            raise ValueError(f"y: expected targets of output {output.name!r}, which has a loss; got None")
        try:
            found[output.name] = _as_real(portion_of(output.loss(y_true, prediction, weight), output, weight))
        except ValueError as error:
            raise ValueError(f"loss {output.loss.name!r} of output {output.name!r}: {error}") from error
    for group in targets.groups:
        found[group.name] = _as_real(portion_of(group(y, y_pred, weights)))
    return found


@contextmanager
def undivided() -> Iterator[None]:
    """While a loss is traced of which only the total is divided among processes."""
    _division.whole = True
    try:
        yield
    finally:
        _division.whole = False


def portion_of(loss: Tensor, output: Output | None = None, weight: Any = None) -> Tensor:
    """This process's part of the loss of a batch that several processes share, by what the loss is divided by."""
    if replica.current().size == 1 or _division.whole:
        return loss
    reduction = getattr(output.loss, "reduction", None) if output else None
    if reduction == "sum":
        return loss
    weighted = reduction == "mean_with_sample_weight" and weight is not None
    return ops.Portion(f"weights of {output.name}" if output and weighted else "samples")(loss)


def prepare_recording(model: Any, graph: Graph) -> None:
    """Has a recording of a model's own step cut images over processes, and split what is differentiated, as `fit` does.

    Raises NotImplementedError for gradients by images that are cut.
    """
    graph.partition = replica.current().partition
    graph.whole_results = graph.partition is not None
    by = next((tensor for tensor in graph.sources or () if tensor.variable is None), None)
    if by is not None and graph.partition is not None:
        raise NotImplementedError(
            f"{type(model).__name__}: gradients by {by.name}, which is no variable, expect whole images on "
            "every rank (DataParallel), got a distribution that cuts them"
        )
    if graph.loss is not None:
        graph.split, graph.split_draw = model.split, model._pydt_steps.draw("train", renewed=False)


def trace_example(model: Any, batch_size: int, targets: Targets | None) -> Traced:
    """A training step on inputs and targets of the model's shapes.  Raises ValueError where those are not known."""
    batch = Batch(_example(model, batch_size), None, None, batch_size)
    if targets is not None and targets.loss is None:
        targets = None
    if targets is not None:
        predictions = trace(model, "predict", batch, None).outputs
        batch.y = _example_targets(model, predictions, targets)
        targets = Targets(targets.loss, targets.loss_weights)
    return trace(model, "train", batch, targets)


def _example(model: Any, batch_size: int) -> Any:
    """Inputs of the model's shapes that take no memory."""
    try:
        shapes = model.input_shape
    except AttributeError:
        shapes = None
    if shapes is None:
        shapes = getattr(model, "_pydt_build_shapes", None)
    if shapes is None:
        raise ValueError(f"plan: the input shape of model {model.name!r} is not known: call it on data first")

    def zeros(shape: tuple[int | None, ...]) -> np.ndarray:
        if None in shape[1:]:
            raise ValueError(f"plan: expected input shapes that are known but for the batch, got {shape}")
        return _empty((batch_size, *shape[1:]), _input_dtype(model))

    return tree.map_shape_structure(zeros, shapes)


def _example_targets(model: Any, predictions: Any, targets: Targets) -> Any:
    flat = tree.flatten(predictions)
    probe = Targets(targets.loss, None)
    probe.build(predictions, output_names(model), None)
    arrays = []
    for output, prediction in zip(probe.outputs, flat, strict=True):
        sparse = output.loss is not None and output.loss.takes_labels
        shape = prediction.shape[:-1] if sparse else prediction.shape
        arrays.append(None if not output.is_read else _empty(shape, "int32" if sparse else prediction.dtype))
    return tree.pack_sequence_as(predictions, arrays)


def _empty(shape: Sequence[int | None], dtype: str) -> np.ndarray:
    """An array of this shape that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), tuple(shape))  # type: ignore[arg-type]


def loss_scale(model: Any) -> float | None:
    """The factor by which the optimizer wants the loss larger, if any."""
    factor: float | None = getattr(getattr(model, "optimizer", None), "loss_scale_factor", None)
    return factor


def output_names(model: Any) -> list[str] | None:
    """Names of the model's outputs, where they are known."""
    try:
        return list(model.output_names)
    except AttributeError:
        return None


def _as_real(output: Any) -> Any:
    """Results and losses are float32 where layers compute in bfloat16."""
    if not isinstance(output, Tensor):
        return output
    found = ops.cast(output, real(output.dtype))
    mask = getattr(output, "_keras_mask", None)
    if mask is not None and found is not output:
        found._keras_mask = mask
    return found


def _input_dtypes(model: Any, x: Any) -> list[str]:
    """Of each array of a batch the dtype in which the graph reads it.  Where images are cut, all are floats.

    Floats are the model's, but for an Input of float64.
    """
    usual = _input_dtype(model)
    whole = replica.current().partition is None and model.split is None
    dtypes = model._pydt_input_dtypes(x) if whole else [None] * len(tree.flatten(x))
    wide = model._pydt_array_dtype == "float64"
    return [
        usual if known is None or (np.dtype(known).kind == "f" and not (wide and known == "float64")) else known
        for known in dtypes
    ]


def _input_dtype(model: Any) -> str:
    dtype = getattr(model, "variable_dtype", None)
    return dtype if dtype in ("float32", "float64") else config.floatx()
