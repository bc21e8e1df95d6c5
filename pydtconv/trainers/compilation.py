"""`Compilable`: what `compile` says of a model's training, and the total loss and the metrics that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv import optimizers as optimizers_module
from pydtconv.graph import current_graph
from pydtconv.layers.turns import Turn, turn_of
from pydtconv.metrics import Mean, Metric
from pydtconv.serialization.objects import deserialize_keras_object, serialize_keras_object
from pydtconv.trainers.compiled import CompiledMetrics, Targets
from pydtconv.trainers.gathering import Gathering
from pydtconv.trainers.step_functions import StepCache
from pydtconv.trainers.tracing import losses_of, portion_of
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
    _targets: Targets | None = None
    _compiled_metrics: CompiledMetrics | None = None
    #: the run whose results are in the metrics, where it is not done
    _gathering: Gathering | None = None
    #: what the thread that is in fit has
    _fitting: Turn
    _loss_tracker: Mean
    _loss_trackers: dict[str, Mean]

    def __init__(self) -> None:
        self._set("_loss_tracker", Mean(name="loss"))
        self._set("_loss_trackers", {})
        self._set("_fitting", Turn())

    def _set(self, name: str, value: Any) -> None:
        """Sets an attribute that is no part of the model's layers and weights."""
        object.__setattr__(self, name, value)

    @property
    def _turn(self) -> Turn:
        """What threads take to use this model, or one that shares layers with it, one after the other."""
        return turn_of(self)

    @property
    def _steps(self) -> StepCache:
        if "_all_steps" not in self.__dict__:
            self._set("_all_steps", StepCache(self))
        return self.__dict__["_all_steps"]

    @property
    def _training(self) -> Training:
        """The model as others see it while it is trained."""
        if "_as_training" not in self.__dict__:
            self._set("_as_training", Training(self))
        return self.__dict__["_as_training"]

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
        _check_execution(run_eagerly, steps_per_execution, jit_compile)
        new_optimizer = optimizers_module.get(optimizer)
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
            "steps_per_execution": steps_per_execution,
        }
        with self._turn.taken():
            if self.optimizer is not None and self.optimizer is not new_optimizer:
                self.optimizer.release()
            self._set("optimizer", new_optimizer)
            self._set("loss", loss)
            self._set("_targets", targets)
            self._set("_compiled_metrics", compiled_metrics)
            self._set("_loss_tracker", Mean(name="loss"))
            self._set("_loss_trackers", {})
            self._set("_gathering", None)
            self._set("steps_per_execution", steps_per_execution)
            self._set("jit_compile", jit_compile)
            self._set("compiled", True)
            self._set("stop_training", False)
            self._set("_compile_config", compile_config)
            self._steps.forget()

    def get_compile_config(self) -> dict[str, Any]:
        """The arguments of compile, as plain data."""
        if not self.compiled:
            return {}
        return {name: serialize_keras_object(value) for name, value in self.__dict__["_compile_config"].items()}

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compiles with the arguments that `get_compile_config` gave."""
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
                terms.append((portion_of(variable.regularizer(variable)), None))
        terms += [(portion_of(tensor), None) for tensor in getattr(graph, "losses", ())]
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
        return order_of_results(self.get_metrics_result()) if self.compiled else []

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


def order_of_results(logs: Mapping[str, Any]) -> list[str]:
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


def _check_execution(run_eagerly: Any, steps_per_execution: Any, jit_compile: Any) -> None:
    if run_eagerly:
        raise ValueError(
            "run_eagerly: expected False, got True: a step runs as a plan. To see values inside, call layers on "
            "arrays (model.layers[0](x)) or make a model of an inner output (Model(model.inputs, layer.output))"
        )
    if jit_compile not in (True, False, "auto"):
        raise ValueError(f"jit_compile: expected True, False or 'auto', got {jit_compile!r}")
    if not isinstance(steps_per_execution, (int, np.integer)) or steps_per_execution < 1:
        raise ValueError(f"steps_per_execution: expected an integer of 1 or more, got {steps_per_execution!r}")
