"""`Compilable`: what `compile` says of a model's training, and the total loss and the metrics that follow from it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv import optimizers as optimizers_module
from pydtconv.dtypes import real
from pydtconv.graph import Split, current_graph
from pydtconv.layers.base import layer_tree
from pydtconv.layers.base.locks import Turn, turn_of
from pydtconv.metrics import Mean
from pydtconv.own_names import KerasName
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object
from pydtconv.suggest import naming_arguments
from pydtconv.trainers.compiled_metrics import CompiledMetrics
from pydtconv.trainers.custom_steps import CustomSteps, as_numbers
from pydtconv.trainers.metric_runs import Gathering
from pydtconv.trainers.step_functions import StepCache
from pydtconv.trainers.targets import Targets
from pydtconv.trainers.tracing import losses_of, output_names, portion_of
from pydtconv.trainers.training import Training


class Compilable:
    """A model with an optimizer, losses and metrics; its steps are kept here, and dropped when it is compiled anew."""

    #: whether compile was called
    compiled = False
    optimizer: Any = None
    loss: Any = None
    steps_per_execution = 1
    jit_compile: Any = True
    run_eagerly = False
    #: how training splits the first part of the network into patches
    split: Split | None = None
    _pydt_targets: Targets | None = None
    _pydt_compiled_metrics: CompiledMetrics | None = None
    #: the run whose results are in the metrics, where it is not done
    _pydt_gathering: Gathering | None = None
    #: what the thread that is in fit has
    _pydt_fitting: Turn
    _pydt_loss_tracker: Mean
    _loss_tracker = KerasName("_pydt_loss_tracker")
    _pydt_loss_trackers: dict[str, Mean]

    def __init__(self) -> None:
        self._pydt_set("_pydt_loss_tracker", Mean(name="loss"))
        self._pydt_set("_pydt_loss_trackers", {})
        self._pydt_set("_pydt_fitting", Turn())

    def _pydt_set(self, name: str, value: Any) -> None:
        """Sets an attribute that is no part of the model's layers and weights."""
        object.__setattr__(self, name, value)

    @property
    def _pydt_turn(self) -> Turn:
        """What threads take to use this model, or one that shares layers with it, one after the other."""
        return turn_of(self)

    @property
    def _pydt_steps(self) -> StepCache:
        if "_pydt_all_steps" not in self.__dict__:
            self._pydt_set("_pydt_all_steps", StepCache(self))
        return self.__dict__["_pydt_all_steps"]

    @property
    def _pydt_custom(self) -> CustomSteps:
        """The steps that the model's class writes itself."""
        if "_pydt_all_custom_steps" not in self.__dict__:
            self._pydt_set("_pydt_all_custom_steps", CustomSteps(self))
        return self.__dict__["_pydt_all_custom_steps"]

    @property
    def _pydt_training(self) -> Training:
        """The model as others see it while it is trained."""
        if "_pydt_as_training" not in self.__dict__:
            self._pydt_set("_pydt_as_training", Training(self))
        return self.__dict__["_pydt_as_training"]

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle gets: without plans, and without what belongs to a `fit` that is running."""
        left_out = (
            "_pydt_all_steps",
            "_pydt_all_custom_steps",
            "_pydt_as_training",
            "_pydt_gathering",
            "_pydt_fitting",
            "_pydt_turn",
            "_pydt_position",
            "history",
        )
        with self._pydt_turn.taken():
            state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in left_out}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self._pydt_set("_pydt_fitting", Turn())

    # --- compile ---------------------------------------------------------------------------------------------------
    @naming_arguments
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
        split: Any = None,
    ) -> None:
        """Says how the model is trained.

        optimizer: a name or an Optimizer; None for a `train_step` that has its own.
        loss: a name, a Loss or a function (y_true, y_pred) in `pydtconv.ops`; for several outputs a list or a dict by
        output name.  loss_weights: numbers, likewise.  metrics, weighted_metrics: lists of names, Metrics or NumPy
        functions; for several outputs lists of lists or dicts; only the weighted ones
        see sample weights.  steps_per_execution: batches between two calls of the callbacks; where `fit` is given
        steps_per_epoch, an epoch has whole groups of so many.
        jit_compile: every step is compiled ahead into a plan; True, False and "auto" mean the same.
        auto_scale_loss: without effect on float32 and float64, which need no scaling.
        split: a `pydtconv.Split`, or its text such as "0.5:2x2:0.2": in training the first part of the network runs in
        patches.  Evaluation, prediction and saved weights are of the whole network.
        run_eagerly: runs each step as Python code, layer by layer, where values can be looked at; slower than a plan.

        Of a model that is compiled anew, the loss stays where none is given, and so do both kinds of metrics.
        Layers that are frozen, or thawed, afterwards count from the next fit or train_on_batch on.
        Raises ValueError and TypeError, before anything is changed, for what names no optimizer, loss or metric.
        """
        _check_execution(steps_per_execution, jit_compile)
        patches = Split.of(split)
        new_optimizer = optimizers_module.get(optimizer)
        before = self.__dict__.get("_pydt_compile_config", {})
        if loss is None:
            loss, loss_weights = before.get("loss"), loss_weights or before.get("loss_weights")
        if metrics is None and weighted_metrics is None:
            metrics, weighted_metrics = before.get("metrics"), before.get("weighted_metrics")
        targets = Targets(loss, loss_weights)
        targets.check_names()
        compiled_metrics = CompiledMetrics(metrics, weighted_metrics)
        compiled_metrics.check_names()
        compile_config = {
            "optimizer": new_optimizer,
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
            "run_eagerly": bool(run_eagerly),
            "steps_per_execution": steps_per_execution,
            "jit_compile": jit_compile,
            **({} if patches is None else {"split": patches.get_config()}),
        }
        with self._pydt_turn.taken():
            if self.optimizer is not None and self.optimizer is not new_optimizer:
                self.optimizer.release()
            self._pydt_set("optimizer", new_optimizer)
            if loss is not None:  # else it may be an attribute that a subclass has
                self._pydt_set("loss", loss)
            self._pydt_set("_pydt_targets", targets)
            compiled_metrics.targets = targets
            self._pydt_set("_pydt_compiled_metrics", compiled_metrics)
            self._pydt_set("_pydt_loss_tracker", Mean(name="loss"))
            self._pydt_set("_pydt_loss_trackers", {})
            self._pydt_set("_pydt_gathering", None)
            self._pydt_set("steps_per_execution", steps_per_execution)
            self._pydt_set("jit_compile", jit_compile)
            self._pydt_set("run_eagerly", bool(run_eagerly))
            self._pydt_set("split", patches)
            self._pydt_set("compiled", True)
            self._pydt_set("stop_training", False)
            self._pydt_set("_pydt_compile_config", compile_config)
            self._pydt_steps.forget()
            self._pydt_custom.forget()

    def get_compile_config(self) -> dict[str, Any]:
        """The arguments of compile, as plain data."""
        if not self.compiled:
            return {}
        return {name: serialize_keras_object(value) for name, value in self.__dict__["_pydt_compile_config"].items()}

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compiles with the arguments that `get_compile_config` gave.

        A `compile` that a subclass has written takes others: it is not called, and a warning says so, as in Keras.
        """
        if self._pydt_overrides("compile"):  # type: ignore[attr-defined]
            told = (
                f"{type(self).__name__}: compile() of its own is not called when the model is loaded: call it, or "
                "override get_compile_config() and compile_from_config(config)"
            )
            warnings.warn(told, stacklevel=2)
            return
        self.compile(**{name: deserialize_keras_object(value) for name, value in config.items()})
        if getattr(self, "built", False) and self.optimizer is not None:
            self.optimizer.ready(self.trainable_variables)  # type: ignore[attr-defined]

    # --- the loss --------------------------------------------------------------------------------------------------
    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """The total loss of a batch, as a scalar tensor: the losses of compile, `add_loss` and regularizers.

        A subclass may override it, in functions of `pydtconv.ops`: it is called once for each shape of batch, on
        symbolic tensors.
        """
        targets = self._pydt_targets
        assert targets is not None
        if not targets.outputs:
            targets.build(y_pred, output_names(self), y)
        flat_y, outputs = targets.arrange(y, "y"), tree.flatten(y_pred)
        found = losses_of(targets, flat_y, outputs, targets.weights(sample_weight))
        if getattr(current_graph(), "records", False):  # `fit`'s own steps do that with the values
            self._pydt_track_output_losses(found, outputs[0].shape[0])
        return self._pydt_total_loss(targets, found)

    def _pydt_track_output_losses(self, losses: Mapping[str, Any], samples: int) -> None:
        """Updates the means of the outputs' losses, where there are several, with those of a batch."""
        if len(losses) > 1:
            first = [] if self._pydt_targets is None else self._pydt_targets.in_loss_order()
            for name in [*filter(losses.__contains__, first), *losses]:
                self._pydt_loss_trackers.setdefault(name, Mean(name=f"{name}_loss"))
            for name, value in losses.items():
                self._pydt_loss_trackers[name].update_state(value, sample_weight=samples)

    def _pydt_total_loss(self, targets: Targets, found: Mapping[str, Any]) -> Any:
        """The weighted sum of the outputs' losses, the penalties of trained variables and the losses added in calls."""
        graph = current_graph()
        weights = targets.scales()
        terms = [(tensor, weights[name]) for name, tensor in found.items()]
        for variable in self.trainable_variables:  # type: ignore[attr-defined]
            if variable.regularizer is not None:
                terms.append((portion_of(variable.regularizer(variable)), None))
        added = getattr(graph, "losses", ())
        if graph is not None and graph.records:
            added = graph.losses_of(self._pydt_flatten_layers())  # type: ignore[attr-defined]
        terms += [(ops.sum(tensor) if tensor.shape else portion_of(tensor), None) for tensor in added]
        if not terms:
            raise ValueError("no loss to compute: give compile a loss, or use add_loss in a layer")
        if len(terms) == 1 and terms[0][1] is None:
            return ops.cast(terms[0][0], real(terms[0][0].dtype))
        wide = "float64" if any(tensor.dtype == "float64" for tensor, _ in terms) else real(terms[0][0].dtype)
        weights_of = tuple(1.0 if weight is None else weight for _, weight in terms)
        return ops.WeightedSum(weights_of)(*(ops.cast(tensor, wide) for tensor, _ in terms))

    # --- metrics ---------------------------------------------------------------------------------------------------
    @property
    def metrics(self) -> list[Any]:
        """The loss's mean, the metrics of compile, the means of the outputs' losses, metrics that are attributes.

        The metrics of compile are one metric, `compile_metrics`, as in Keras, whose result is a dict.
        """
        found: list[Any] = []
        if self.compiled:
            assert self._pydt_compiled_metrics is not None
            compiled = [self._pydt_compiled_metrics] if any(self._pydt_compiled_metrics.given) else []
            found = [self._pydt_loss_tracker, *compiled, *self._pydt_loss_trackers.values()]
        return [*found, *self._pydt_attribute_metrics()]

    @property
    def metrics_variables(self) -> list[Any]:
        """The variables of all metrics."""
        return [variable for metric in self.metrics for variable in metric.variables]

    @property
    def _pydt_kept_metrics(self) -> list[Any]:
        """`metrics`, those of compile one by one where the step is not the subclass's."""
        if self._pydt_custom.has("train") or self._pydt_custom.has("test"):
            return self.metrics
        return self._pydt_single_metrics()

    def _pydt_single_metrics(self) -> list[Any]:
        both = [metric.metrics if isinstance(metric, CompiledMetrics) else [metric] for metric in self.metrics]
        return [metric for metrics in both for metric in metrics]

    def _pydt_attribute_metrics(self) -> list[Any]:
        found: list[Any] = layer_tree.known(self, "metrics", Compilable._pydt_found_metrics)
        return found

    def _pydt_found_metrics(self) -> list[Any]:
        """Metrics that are attributes of the model, and of layers inside that are no models."""
        found: dict[int, Any] = {}
        rest: list[Any] = [self]
        seen: set[int] = set()
        while rest:
            layer: Any = rest.pop()
            of_another = layer is not self and isinstance(layer, Compilable)
            if layer._pydt_own_metrics and not of_another:
                found.update((id(metric), metric) for metric in layer._pydt_own_metrics)
            if layer._pydt_layers and id(layer) not in seen:
                seen.add(id(layer))
                rest.extend(reversed(layer._pydt_layers))
        return list(found.values())

    @property
    def metrics_names(self) -> list[str]:
        """Names of `metrics`."""
        return [metric.name for metric in self.metrics]

    def _pydt_order_of(self, logs: Mapping[str, Any]) -> list[str]:
        """The names of results in the order in which they are returned as a list, which is Keras's.

        The loss, the metrics of compile, the outputs' losses, metrics that are attributes; then what has another name
        than its metric, by the alphabet: metrics of one output among several, and what a step of a user's returns.
        """
        known = [metric.name for metric in self._pydt_single_metrics()]
        first = [name for name in dict.fromkeys(known) if name in logs]
        return [*first, *sorted(name for name in logs if name not in first)]

    def reset_metrics(self) -> None:
        """Sets all metrics back."""
        for metric in self.metrics:
            metric.reset_state()

    def get_metrics_result(self) -> dict[str, Any]:
        """Results of all metrics by name."""
        if (
            self._pydt_custom.has("train")
            or self._pydt_custom.has("test")
            or type(self).metrics is not Compilable.metrics
        ):
            results = {}
            for metric in self.metrics:
                found = metric.result()
                results.update(found if isinstance(found, dict) else {metric.name: found})
            return results
        if self._pydt_compiled_metrics is None:
            return {metric.name: metric.result() for metric in self._pydt_attribute_metrics()}
        results = {"loss": self._pydt_loss_tracker.result()}
        results.update(self._pydt_compiled_metrics.results())
        results.update({metric.name: metric.result() for metric in self._pydt_loss_trackers.values()})
        results.update({metric.name: metric.result() for metric in self._pydt_attribute_metrics()})
        return results

    def _pydt_results(self, kind: str, logs: dict[str, Any]) -> dict[str, Any]:
        """The results of a run over data: those of the metrics; of the last step, where that returns others."""
        results = as_numbers(self.get_metrics_result())
        own = self._pydt_custom.has(kind) or type(self).compute_metrics is not Compilable.compute_metrics
        return logs if own and results.keys() != logs.keys() else results

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Updates the metrics of compile with a batch's arrays and returns all results.  A subclass may extend it."""
        targets, metrics = self._pydt_targets, self._pydt_compiled_metrics
        assert targets is not None
        assert metrics is not None
        metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()


def _check_execution(steps_per_execution: Any, jit_compile: Any) -> None:
    if jit_compile not in (True, False, "auto"):
        raise ValueError(f"jit_compile: expected True, False or 'auto', got {jit_compile!r}")
    if not isinstance(steps_per_execution, (int, np.integer)) or steps_per_execution < 1:
        raise ValueError(f"steps_per_execution: expected an integer of 1 or more, got {steps_per_execution!r}")
