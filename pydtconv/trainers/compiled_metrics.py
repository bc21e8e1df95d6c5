"""The metrics that `compile` was given, brought to one list for each output of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydtconv import losses as losses_module
from pydtconv import metrics as metrics_module
from pydtconv import tree
from pydtconv.graph.ir import tracing
from pydtconv.metrics.metric import Masks, given_to, recorded
from pydtconv.naming import to_snake_case
from pydtconv.trainers.targets import Shape, Targets, for_outputs, identifiers_in, is_named, kind_of


def resolve_metric(identifier: Any, target: Shape, prediction: Shape) -> metrics_module.Metric:
    """The metric of an identifier; "accuracy" (or "acc") is chosen by shapes."""
    if is_named(identifier, "accuracy", "acc"):
        chosen = {
            "binary": metrics_module.BinaryAccuracy,
            "sparse": metrics_module.SparseCategoricalAccuracy,
            "categorical": metrics_module.CategoricalAccuracy,
        }
        return chosen[kind_of(target, prediction)](name=identifier)
    metric = metrics_module.get(identifier)
    if metric is None:
        raise ValueError("metrics: expected a name, a metric or a function, got None")
    if isinstance(metric, losses_module.Loss) or not isinstance(metric, metrics_module.Metric):
        name = getattr(metric, "name", None) or to_snake_case(getattr(metric, "__name__", type(metric).__name__))
        metric = metrics_module.MeanMetricWrapper(metric, name=name)
    if isinstance(identifier, str):
        metric.name = identifier
    return metric


class CompiledMetrics(Masks):
    """The metrics of compile, made when the shapes are known.  They are also one metric, of all outputs together."""

    name = "compile_metrics"

    def __init__(self, metrics: Any, weighted_metrics: Any) -> None:
        for name, value in ("metrics", metrics), ("weighted_metrics", weighted_metrics):
            if value is not None and not isinstance(value, (list, tuple, dict)):
                raise ValueError(f"{name}: expected a list or a dict, got {value!r}")
        self.given = (metrics, weighted_metrics)
        self.built = False
        self.targets: Targets | None = None
        self._plain: list[list[metrics_module.Metric]] = []
        self._weighted: list[list[metrics_module.Metric]] = []
        self._prefixes: list[str] = []
        #: what a checkpoint has kept, until the metrics are made
        self._awaited: Mapping[str, Any] | None = None

    def check_names(self) -> None:
        """Raises ValueError for what names no metric."""
        for identifier in identifiers_in(list(self.given)):
            if not is_named(identifier, "accuracy", "acc"):
                metrics_module.get(identifier)

    @property
    def metrics(self) -> list[metrics_module.Metric]:
        return [metric for group in (*self._plain, *self._weighted) for metric in group]

    def output_of(self, metric: Any) -> int:
        """The number of the output that a metric is of; 0 where it is of none."""
        for groups in self._plain, self._weighted:
            for i, group in enumerate(groups):
                if any(metric is one for one in group):
                    return i
        return 0

    def build(self, names: Sequence[str], y_true: Sequence[Any], y_pred: Sequence[Any]) -> None:
        """names, y_true (None where there are no targets), y_pred: over the flat outputs, with shapes."""
        if self.built:
            return
        sets = []
        for argument, given in zip(("metrics", "weighted_metrics"), self.given, strict=True):
            given = given if self.targets is None else self.targets.in_order(given)
            groups = _metric_groups(argument, given, names)
            made = []
            for name, group, target, prediction in zip(names, groups, y_true, y_pred, strict=True):
                if group and target is None:
                    raise ValueError(f"y: expected targets of output {name!r}, which has metrics")
                made.append([resolve_metric(m, tuple(target.shape), tuple(prediction.shape)) for m in group])
            sets.append(made)
        self._plain, self._weighted = sets
        told = names if self.targets is None or not self.targets.names else self.targets.metric_names
        self._prefixes = [f"{name}_" if len(names) > 1 else "" for name in told]
        self.built = True
        if self._awaited is not None:
            with tracing.paused():
                self.set_state(self._awaited)

    @recorded
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Lets a batch's targets and predictions, in the structure of the outputs, into all metrics."""
        targets, flat = self._flat(y_true, y_pred)
        assert self.targets is not None
        self.update(targets, flat, self.targets.weights(sample_weight))

    def will_be_updated(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Makes the metrics, for code that is traced: their names are part of its results."""
        self._flat(y_true, y_pred)

    def _flat(self, y_true: Any, y_pred: Any) -> tuple[list[Any], list[Any]]:
        assert self.targets is not None
        if not self.targets.outputs:
            self.targets.build(y_pred, None, y_true)
        targets, flat = self.targets.arrange(y_true, "y"), tree.flatten(y_pred)
        self.build(self.targets.names, targets, flat)
        return targets, flat

    def result(self) -> dict[str, Any]:
        """All results by name."""
        return self.results()

    def reset_state(self) -> None:
        """Sets all metrics back."""
        self.reset()

    @property
    def variables(self) -> list[Any]:
        return [variable for metric in self.metrics for variable in metric.variables]

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        if self._awaited is not None:
            return dict(self._awaited)
        return {"metrics": [metric.get_state() for metric in self.metrics]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Puts back what `get_state` gave, at once or when the metrics are made; of none, they have seen no batch."""
        if not state["metrics"]:
            self.reset()
            return
        self._awaited = None if self.built else state
        for metric, kept in zip(self.metrics, state["metrics"], strict=True) if self.built else ():
            metric.set_state(kept)

    def update(self, y_true: Sequence[Any], y_pred: Sequence[Any], sample_weight: Sequence[Any]) -> None:
        for group, target, prediction in zip(self._plain, y_true, y_pred, strict=True):
            for metric in group:
                metric.update_state(*given_to(metric, (target, prediction)))
        for group, target, prediction, weight in zip(self._weighted, y_true, y_pred, sample_weight, strict=True):
            for metric in group:
                target, prediction, weight = given_to(metric, (target, prediction, weight))
                metric.update_state(target, prediction, sample_weight=weight)

    def reset(self) -> None:
        self._awaited = None
        for metric in self.metrics:
            metric.reset_state()

    def results(self) -> dict[str, Any]:
        """Results by name; a name that comes again is numbered, after "weighted_" where the metric is weighted."""
        results: dict[str, Any] = {}
        for groups, again in (self._plain, ""), (self._weighted, "weighted_"):
            for prefix, group in zip(self._prefixes, groups, strict=True):
                for metric in group:
                    name = prefix + metric.name
                    if name in results:
                        name = _free_name(f"{prefix}{again}{metric.name}", results)
                    results[name] = metric.result()
        return results


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    found, count = name, 1
    while found in taken:
        found, count = f"{name}_{count}", count + 1
    return found


def _metric_groups(argument: str, given: Any, names: Sequence[str]) -> list[list[Any]]:
    """For each output, the list of what was given for it."""
    if not given:
        return [[] for _ in names]
    if isinstance(given, Mapping):
        groups = for_outputs(argument, given, names, spread=False, complete=False)
    elif len(names) == 1:
        return [tree.flatten(list(given))]
    elif len(given) != len(names):
        raise ValueError(
            f"{argument}: expected {len(names)} entries, for outputs {list(names)}, or a dict by name, got {len(given)}"
        )
    else:
        groups = list(given)
    return [[] if group is None else list(group) if isinstance(group, (list, tuple)) else [group] for group in groups]
