"""The class Metric: metrics of one's own, variables, dtypes, names, and what is refused."""

import inspect

import numpy as np
import pytest

import pydtconv
from pydtconv import DTypePolicy, metrics
from tests.metrics.against_keras import PROBABILITIES, VALUES
from tests.real_keras import import_keras


def test_own_metric_by_subclass_and_function():
    class Positives(metrics.Metric):
        def __init__(self, name="positives", **kwargs):
            super().__init__(name=name, **kwargs)
            self.count = self.add_weight(shape=(), initializer="zeros", name="count")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.count.assign_add(np.sum(y_pred > 0.5))

        def result(self):
            return float(self.count)

    metric = Positives()
    assert metric([0, 1], np.array([0.6, 0.9])) == 2
    metric.update_state(0, np.array([0.7, 0.1]))
    assert metric.result() == 3
    metric.reset_state()
    assert metric.result() == 0

    def largest(y_true, y_pred):
        return np.abs(y_true - y_pred).max(-1)

    wrapped = metrics.MeanMetricWrapper(largest)
    assert wrapped.name == "largest"
    assert wrapped(np.zeros((2, 2)), np.array([[1.0, 3.0], [2.0, 1.0]])) == 2.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.AUC(curve="R"), "curve"),
        (lambda: metrics.AUC(num_labels=3), "num_labels"),
        (lambda: metrics.Precision(thresholds=2.0), "thresholds"),
        (lambda: metrics.F1Score(average="all"), "average"),
        (lambda: metrics.MeanSquaredError()(np.zeros((2, 3)), np.zeros((2, 4))), "one shape"),
        (lambda: metrics.Precision()(np.zeros((2, 3)), np.zeros((2, 4))), "one shape"),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", DTypePolicy("mixed_bfloat16"), "bfloat16"])
def test_a_metric_gathers_bfloat16_in_float32(dtype):
    class Counts(metrics.Metric):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.count = self.add_variable((), "zeros")

    assert Counts(dtype=dtype).count.dtype == "float32"
    metric = metrics.Mean(dtype=dtype)
    metric.update_state(np.array([256, 257]))
    assert metric.result() == 256.5
    assert metric.get_config()["dtype"] == metric.dtype == "float32"


def test_an_unknown_dtype_of_a_metric_is_refused():
    with pytest.raises(ValueError, match=r"AUC: dtype: .* got 'mixed_float16'; instead of mixed_float16 use mixed_b"):
        metrics.AUC(dtype="mixed_float16")


class Rooted(metrics.Metric):
    """The root of another metric's result, with a count of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = metrics.MeanSquaredError(name="inner")
        self.more = {"a": [pydtconv.Variable(np.float32(0))]}
        self.seen = self.add_variable((), "zeros", name="seen")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.inner.update_state(y_true, y_pred)
        self.seen.assign_add(1)
        self.more["a"][0].assign_add(2)

    def result(self):
        return self.inner.result() ** 0.5


def test_metrics_and_variables_that_are_attributes_of_a_metric():
    metric, again = Rooted(), Rooted()
    assert [v.path for v in metric.variables] == ["rooted/seen", "inner/total", "inner/count", "variable"]
    metric.update_state(VALUES, PROBABILITIES)
    again.set_state(metric.get_state())
    assert again.result() == metric.result() > 0
    np.testing.assert_array_equal([v.numpy() for v in again.variables], [v.numpy() for v in metric.variables])
    metric.reset_state()
    np.testing.assert_array_equal([v.numpy() for v in metric.variables], 0)


#: metrics that keep what they gather in one array
IN_ONE = {"R2Score", "FBetaScore", "F1Score"}
NEEDED = {
    "MeanMetricWrapper": (np.subtract,), "IoU": (3, [0]), "MeanIoU": (3,), "OneHotIoU": (3, [0]), "OneHotMeanIoU": (3,),
    **dict.fromkeys(("SensitivityAtSpecificity", "SpecificityAtSensitivity"), (0.5,)),
    **dict.fromkeys(("PrecisionAtRecall", "RecallAtPrecision"), (0.5,)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(metrics.__all__) - IN_ONE - {"Metric"}))
def test_variables_are_those_of_keras(name):
    """By shape and, but for counts, by name; what is assigned to one is what the metric goes on with."""
    kind = getattr(metrics, name)
    if not inspect.isclass(kind):
        return
    ours, theirs = kind(*NEEDED.get(name, ())), getattr(import_keras().metrics, name)(*NEEDED.get(name, ()))
    assert [v.shape for v in ours.variables] == [tuple(v.shape) for v in theirs.variables]
    assert [v.name for v in ours.variables] == [
        v.name.replace("accumulator", ours.variables[0].name) for v in theirs.variables
    ]
    for variable in ours.variables:
        variable.assign(np.full(variable.shape, 2.0))
    np.testing.assert_array_equal(np.concatenate([v.numpy().ravel() for v in ours.variables]), 2)
    ours.reset_state()
    np.testing.assert_array_equal(np.concatenate([v.numpy().ravel() for v in ours.variables]), 0)
    with pytest.raises(ValueError, match="expected shape"):
        ours.variables[0].assign(np.zeros((7, 7)))
