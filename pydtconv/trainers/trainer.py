"""`Trainer`: compile, fit, evaluate and predict; the part of a model that trains it.

A step is traced once for each shape of batch, planned, and run by an executor (see steps.py).  Its predictions then
update the metrics, which are NumPy, and in training the optimizer takes a step over the flat arrays of the store.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import callbacks as callbacks_module
from pydtconv import ops, tree
from pydtconv import optimizers as optimizers_module
from pydtconv.graph import Plan, current_graph
from pydtconv.metrics import Mean, Metric
from pydtconv.trainers.arrays import ArrayData, Batch, is_arrays, split_tail, to_arrays
from pydtconv.trainers.checks import check_inputs, check_targets
from pydtconv.trainers.compiled import CompiledMetrics, Targets
from pydtconv.trainers.predictions import Predictions
from pydtconv.trainers.steps import Results, Steps, losses_of
from pydtconv.trainers.streams import Epochs, StreamData, groups, make_data


class Trainer:
    """What makes a model trainable.  `Model` inherits from it and from `Layer`."""

    #: whether compile was called
    compiled = False
    optimizer: Any = None
    loss: Any = None
    stop_training = False
    stop_evaluating = False
    stop_predicting = False
    history: Any = None
    steps_per_execution = 1
    jit_compile: Any = True
    run_eagerly = False
    _targets: Targets | None = None
    _compiled_metrics: CompiledMetrics | None = None
    _memory_limit: int | None = None
    _loss_tracker: Mean
    _loss_trackers: dict[str, Mean]

    def __init__(self) -> None:
        self._set("_loss_tracker", Mean(name="loss"))
        self._set("_loss_trackers", {})

    def _set(self, name: str, value: Any) -> None:
        """Sets an attribute that is no part of the model's layers and weights."""
        object.__setattr__(self, name, value)

    @property
    def _steps(self) -> Steps:
        if "_all_steps" not in self.__dict__:
            self._set("_all_steps", Steps(self))
        return self.__dict__["_all_steps"]

    # --- compile ---------------------------------------------------------------------------------------------------
    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | str = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Says how the model is trained.

        optimizer: a name or an Optimizer.  loss: a name, a Loss or a function (y_true, y_pred) in `pydtconv.ops`; for
        several outputs a list or a dict by output name.  loss_weights: numbers, likewise.  metrics, weighted_metrics:
        lists of names, Metrics or NumPy functions; for several outputs lists of lists or dicts; only the weighted ones
        see sample weights.  steps_per_execution: batches between two calls of the callbacks.
        jit_compile: every step is compiled ahead into a plan; True, False and "auto" mean the same.
        auto_scale_loss: without effect on float32 and float64, which need no scaling.
        run_eagerly: only False; a step never runs as Python, layer by layer.

        Layers that are frozen, or thawed, afterwards count from the next fit or train_on_batch on.
        Raises ValueError and TypeError, before anything is changed, for what names no optimizer, loss or metric.
        """
        _check_overrides(type(self))
        if run_eagerly:
            raise ValueError(
                "run_eagerly: expected False, got True: a step runs as a plan. To see values inside, call layers on "
                "arrays (model.layers[0](x)) or make a model of an inner output (Model(model.inputs, layer.output))"
            )
        if jit_compile not in (True, False, "auto"):
            raise ValueError(f"jit_compile: expected True, False or 'auto', got {jit_compile!r}")
        if not isinstance(steps_per_execution, (int, np.integer)) or steps_per_execution < 1:
            raise ValueError(f"steps_per_execution: expected an integer of 1 or more, got {steps_per_execution!r}")
        new_optimizer = optimizers_module.get(optimizer)
        targets = Targets(loss, loss_weights)
        targets.check_names()
        compiled_metrics = CompiledMetrics(metrics, weighted_metrics)
        compiled_metrics.check_names()
        if self.optimizer is not None and self.optimizer is not new_optimizer:
            self.optimizer.release()
        self._set("optimizer", new_optimizer)
        self._set("loss", loss)
        self._set("_targets", targets)
        self._set("_compiled_metrics", compiled_metrics)
        self._set("_loss_tracker", Mean(name="loss"))
        self._set("_loss_trackers", {})
        self._set("steps_per_execution", steps_per_execution)
        self._set("jit_compile", jit_compile)
        self._set("compiled", True)
        self._set("stop_training", False)
        self._set(
            "_compile_config",
            {
                "optimizer": new_optimizer,
                "loss": loss,
                "loss_weights": loss_weights,
                "metrics": metrics,
                "weighted_metrics": weighted_metrics,
                "steps_per_execution": steps_per_execution,
            },
        )
        self._steps.forget()

    def get_compile_config(self) -> dict[str, Any]:
        """The arguments of compile, as plain data."""
        if not self.compiled:
            return {}
        from pydtconv.saving import serialize_keras_object

        return {name: serialize_keras_object(value) for name, value in self.__dict__["_compile_config"].items()}

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compiles with the arguments that `get_compile_config` gave."""
        from pydtconv.saving import deserialize_keras_object

        self.compile(**{name: deserialize_keras_object(value) for name, value in config.items()})
        if getattr(self, "built", False):
            self.optimizer.build(self.trainable_variables)  # type: ignore[attr-defined]

    # --- the loss --------------------------------------------------------------------------------------------------
    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The total loss of a batch, as a scalar tensor: the losses of compile, `add_loss` and regularizers.

        A subclass may override it, in functions of `pydtconv.ops`: it is called once for each shape of batch, on
        symbolic tensors.
        """
        targets = self._targets
        assert targets is not None
        flat_y = tree.flatten(y) if y is not None else [None] * len(targets.names)
        return self.total_loss(
            targets, losses_of(targets, flat_y, tree.flatten(y_pred), targets.weights(sample_weight))
        )

    def total_loss(self, targets: Targets, found: Mapping[str, Any]) -> Any:
        """The weighted sum of the outputs' losses, the penalties of trained variables and the losses added in calls."""
        graph = current_graph()
        weights = {output.name: output.weight for output in targets.outputs}
        terms = [(tensor, weights[name]) for name, tensor in found.items()]
        for variable in self.trainable_variables:  # type: ignore[attr-defined]
            if variable.regularizer is not None:
                terms.append((variable.regularizer(variable), None))
        terms += [(tensor, None) for tensor in getattr(graph, "losses", ())]
        if not terms:
            raise ValueError("no loss to compute: give compile a loss, or use add_loss in a layer")
        if len(terms) == 1 and terms[0][1] is None:
            return terms[0][0]
        return ops.WeightedSum(tuple(1.0 if w is None else w for _, w in terms))(*(tensor for tensor, _ in terms))

    # --- metrics ---------------------------------------------------------------------------------------------------
    @property
    def metrics(self) -> list[Metric]:
        """The loss's mean, the metrics of compile, the means of the outputs' losses."""
        if not self.compiled:
            return []
        assert self._compiled_metrics is not None
        return [self._loss_tracker, *self._compiled_metrics.metrics, *self._loss_trackers.values()]

    @property
    def metrics_names(self) -> list[str]:
        """Names of what evaluate returns, in its order."""
        return _order(self.get_metrics_result()) if self.compiled else []

    def reset_metrics(self) -> None:
        """Sets all metrics back."""
        for metric in self.metrics:
            metric.reset_state()

    def get_metrics_result(self) -> dict[str, Any]:
        """Results of all metrics by name."""
        assert self._compiled_metrics is not None
        results = {"loss": self._loss_tracker.result()}
        results.update(self._compiled_metrics.results())
        results.update({metric.name: metric.result() for metric in self._loss_trackers.values()})
        return results

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Updates the metrics of compile with a batch's arrays and returns all results.  A subclass may extend it."""
        targets, metrics = self._targets, self._compiled_metrics
        assert targets is not None
        assert metrics is not None
        flat_y, flat_pred = targets.arrange(y, "y"), tree.flatten(y_pred)
        metrics.build(targets.names, flat_y, flat_pred)
        metrics.update(flat_y, flat_pred, targets.weights(sample_weight))
        return self.get_metrics_result()

    # --- one batch -------------------------------------------------------------------------------------------------
    def _train_batch(self, batch: Batch) -> Results:
        """One training step on the batch: forward, backward, update.

        What is put around training (a reduction of gradients over processes) wraps this method or `_apply_gradients`;
        the gradients in the store are those of the batch's mean loss, over `batch.size` samples.
        """
        results = self._run("train", batch)
        self._apply_gradients(batch.size)
        return results

    def _apply_gradients(self, samples: int) -> None:
        """Lets the optimizer take a step with the gradients in the store, which are of the mean over samples."""
        store = self._steps.memory.store
        if store is not None and store.variables:
            self.optimizer.apply(store)

    def _run(self, kind: str, batch: Batch) -> Results:
        """One run of the plan for this kind ("train", "test", "predict") and shape of batch."""
        step = self._steps.step(kind, batch, self._targets, self._memory_limit)
        if kind == "predict":
            return step.run(tree.flatten(batch.x))
        targets = self._targets
        assert targets is not None
        return step.run(tree.flatten(batch.x), targets.arrange(batch.y, "y"), targets.weights(batch.sample_weight))

    def _note(self, batch: Batch, results: Results) -> dict[str, Any]:
        """Updates loss means and metrics with a batch; returns all results so far."""
        self._loss_tracker.update_state(results.loss, sample_weight=batch.size)
        if len(results.losses) > 1:
            for name, loss in results.losses.items():
                tracker = self._loss_trackers.setdefault(name, Mean(name=f"{name}_loss"))
                tracker.update_state(loss, sample_weight=batch.size)
        return self.compute_metrics(batch.x, batch.y, results.predictions, batch.sample_weight)

    def _prepare(self, kind: str, data: ArrayData | StreamData) -> None:
        """Checks data against the model and traces the first step, before anything is changed."""
        if kind != "predict" and not self.compiled:
            raise ValueError(f"call compile() before {'fit' if kind == 'train' else 'evaluate'}()")
        batch = data.first()
        check_inputs(self, batch.x)
        self._steps.check_values()
        if kind == "train":
            self._steps.check_trainable()
        targets = None if kind == "predict" else self._targets
        step = self._steps.step(kind, batch, targets, self._memory_limit)
        if targets is not None:
            y = data.y if isinstance(data, ArrayData) else batch.y
            check_targets(targets, y, step.shapes)
            assert self._compiled_metrics is not None
            self._compiled_metrics.build(targets.names, targets.arrange(batch.y, "y"), tree.flatten(step.shapes))
        if kind == "train":
            self._check_trainable()
            self.optimizer.build(self.trainable_variables, self._steps.memory.store)  # type: ignore[attr-defined]

    def _check_trainable(self) -> None:
        if not self.trainable_variables:  # type: ignore[attr-defined]
            warnings.warn("the model has no trainable variables: training changes nothing", UserWarning, stacklevel=4)

    # --- fit -------------------------------------------------------------------------------------------------------
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: str | int = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | str = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
        memory_limit: int | None = None,
    ) -> Any:
        """Trains the model; returns a History, whose `history` holds the results of each epoch by name.

        x: an array (n, ...), a list or dict of arrays for several inputs, or an iterable of batches (x, y) or
        (x, y, sample_weight): a generator, a PyDataset, a loader.  y: targets, likewise.  batch_size: 32 by default.
        verbose: "auto" or 1 a progress bar, 2 a line for each epoch, 0 nothing.
        validation_split: the share at the end of the arrays, before shuffling, that is not trained on.
        validation_data: (x, y), (x, y, sample_weight) or an iterable of batches.  shuffle: True, "batch" or False.
        class_weight: class number -> weight.  initial_epoch: the number of the first epoch.  steps_per_epoch: batches
        in an epoch, where it is not all of them.  validation_freq: epochs between two validations, or their numbers.
        memory_limit: bytes that a step may take, see `plan`.

        Raises ValueError, naming the argument, for data that does not fit, before anything is changed.
        """
        if not self.compiled:
            raise ValueError("call compile() before fit()")
        should_validate(0, validation_freq)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split_tail(validation_split, x, y, sample_weight)
        data = make_data(x, y, sample_weight, batch_size, shuffle, class_weight)
        self._set("_memory_limit", memory_limit)
        self._prepare("train", data)
        epochs_of = Epochs(data, steps_per_epoch)
        validation = None
        if validation_data is not None:
            arrays = unpack(validation_data)
            size = None if not is_arrays(arrays[0]) else validation_batch_size or batch_size
            validation = Epochs(make_data(*arrays, batch_size=size), validation_steps)
            self._prepare("test", validation.data)
        listeners = callbacks_module.CallbackList.of(
            callbacks,
            model=self,
            add_history=True,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=epochs_of.num_batches,
            validation=validation is not None,
        )
        self._set("stop_training", False)
        logs: dict[str, Any] = {}
        listeners.on_train_begin()
        for epoch in range(initial_epoch, epochs):
            logs = self._fit_epoch(epoch, epochs_of, listeners)
            if validation is not None and should_validate(epoch, validation_freq):
                results = self._evaluate(validation, listeners)
                logs.update({f"val_{name}": value for name, value in results.items()})
            listeners.on_epoch_end(epoch, logs)
            if self.stop_training or epochs_of.ran_dry:
                break
        if epochs > initial_epoch:
            self.optimizer.finalize_variable_values(self.trainable_variables)  # type: ignore[attr-defined]
        listeners.on_train_end(logs)
        return self.history

    def _fit_epoch(self, epoch: int, batches: Epochs, listeners: Any) -> dict[str, Any]:
        self.reset_metrics()
        listeners.on_epoch_begin(epoch)
        for first, last, group in groups(batches, self.steps_per_execution):
            listeners.on_train_batch_begin(first)
            logs: dict[str, Any] = {}
            for batch in group:
                logs = self._note(batch, self._train_batch(batch))
            listeners.on_train_batch_end(last, logs)
            if self.stop_training:
                break
        return dict(self.get_metrics_result())

    # --- evaluate, predict -----------------------------------------------------------------------------------------
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Loss and metrics on data, in test mode: a list in the order of `metrics_names` (a number where there is only
        the loss), or a dict by name.  Arguments as in `fit`; steps: number of batches."""
        if kwargs:
            raise TypeError(f"evaluate: unknown argument {next(iter(kwargs))!r}")
        data = make_data(x, y, sample_weight, batch_size)
        self._set("_memory_limit", None)
        self._prepare("test", data)
        batches = Epochs(data, steps)
        listeners = callbacks_module.CallbackList.of(
            callbacks,
            model=self,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=1,
            steps=batches.num_batches,
        )
        logs = self._evaluate(batches, listeners)
        return logs if return_dict else _values(logs)

    def _evaluate(self, batches: Epochs, listeners: Any) -> dict[str, Any]:
        self._set("stop_evaluating", False)
        listeners.on_test_begin()
        self.reset_metrics()
        for first, last, group in groups(batches, self.steps_per_execution):
            listeners.on_test_batch_begin(first)
            logs: dict[str, Any] = {}
            for batch in group:
                logs = self._note(batch, self._run("test", batch))
            listeners.on_test_batch_end(last, logs)
            if self.stop_evaluating:
                break
        logs = dict(self.get_metrics_result())
        listeners.on_test_end(logs)
        return logs

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The outputs for all samples, in test mode: arrays in the structure of the model's outputs.

        x: arrays or an iterable of batches, of which only the inputs are read; steps: number of batches.
        """
        data = make_data(x, batch_size=batch_size)
        self._prepare("predict", data)
        batches = Epochs(data, steps)
        listeners = callbacks_module.CallbackList.of(
            callbacks, model=self, add_progbar=verbose != 0, verbose=verbose, epochs=1, steps=batches.num_batches
        )
        self._set("stop_predicting", False)
        listeners.on_predict_begin()
        predictions = Predictions(data.samples if isinstance(data, ArrayData) and steps is None else None)
        for first, last, group in groups(batches, self.steps_per_execution):
            listeners.on_predict_batch_begin(first)
            outputs = None
            for batch in group:
                outputs = predictions.add(self._run("predict", batch).predictions, batch.size)
            listeners.on_predict_batch_end(last, {"outputs": outputs})
            if self.stop_predicting:
                break
        listeners.on_predict_end()
        return predictions.result()

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
        batch = self._single("train", x, y, sample_weight, class_weight)
        logs = self._note(batch, self._train_batch(batch))
        return logs if return_dict else _values(logs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Loss and metrics of one batch, in test mode."""
        batch = self._single("test", x, y, sample_weight)
        logs = self._note(batch, self._run("test", batch))
        return logs if return_dict else _values(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, in test mode."""
        batch = self._single("predict", x)
        return tree.map_structure(np.array, self._run("predict", batch).predictions)

    def _single(self, kind: str, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None) -> Batch:
        arrays = to_arrays("x", x)
        data = ArrayData(arrays, y, sample_weight, len(tree.flatten(arrays)[0]), class_weight=class_weight)
        self._prepare(kind, data)
        if kind != "predict":
            self.reset_metrics()
        return data.first()

    # --- plan ------------------------------------------------------------------------------------------------------
    def plan(self, batch_size: int, memory_limit: int | None = None, variant: str | None = None) -> Plan:
        """The plan of a training step with this batch size: its predicted peak, a table of nodes, a picture of memory.

        memory_limit: bytes that the peak may not exceed.  variant: of the convolutions, None for the one in force.
        Targets have the shapes that the losses of compile read; a model without a loss is planned with the sum of its
        outputs' means.

        Raises ValueError for a model whose input shapes are not known, and MemoryLimitError when no plan fits.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ValueError(f"batch_size: expected an integer of 1 or more, got {batch_size!r}")
        return self._steps.plan(int(batch_size), self._targets, memory_limit, variant)

    def overrides(self, name: str) -> bool:
        """Whether a subclass has a method of its own in place of Trainer's."""
        return getattr(type(self), name) is not getattr(Trainer, name)


def unpack(data: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) of validation data."""
    if isinstance(data, (tuple, list)):
        if not 1 <= len(data) <= 3:
            raise ValueError(f"validation_data: expected (x, y) or (x, y, sample_weight), got {len(data)} parts")
        return (*data, None, None)[:3]
    return data, None, None


def should_validate(epoch: int, frequency: int | Sequence[int]) -> bool:
    """Whether to validate after this epoch.  Raises ValueError for a frequency that is none."""
    if isinstance(frequency, (int, np.integer)) and frequency >= 1:
        return (epoch + 1) % frequency == 0
    if isinstance(frequency, (list, tuple, set)):
        return epoch + 1 in frequency
    raise ValueError(f"validation_freq: expected an integer of 1 or more or a list of epochs, got {frequency!r}")


def _values(logs: Mapping[str, Any]) -> Any:
    """The results in order, a single one by itself."""
    values = [logs[name] for name in _order(logs)]
    return values[0] if len(values) == 1 else values


def _order(logs: Mapping[str, Any]) -> list[str]:
    """Names as evaluate returns them: the loss, then everything else as it comes."""
    return ["loss", *(name for name in logs if name != "loss")]


def _check_overrides(kind: type) -> None:
    for name in ("train_step", "test_step", "predict_step", "make_train_function", "make_test_function"):
        if hasattr(kind, name):
            raise NotImplementedError(
                f"{kind.__name__}.{name}: custom steps are not supported, a step is planned ahead. Write a custom "
                "loss, override compute_loss(x, y, y_pred, sample_weight, training) in functions of pydtconv.ops, or "
                "loop over train_on_batch and test_on_batch"
            )
