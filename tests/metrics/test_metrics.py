"""Metrics against Keras, over batches, with and without sample weights."""

import numpy as np
import pytest

from pydtconv import DTypePolicy, metrics
from tests.real_keras import import_keras
from tests.signatures import arguments

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RNG = np.random.default_rng(3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def one_hot(labels, classes):
    return np.eye(classes, dtype="float32")[labels]


N, K = 37, 7
LABELS = RNG.integers(0, K, N)
SCORES = softmax(RNG.normal(size=(N, K))).astype("float32")
VALUES = RNG.normal(size=(N, K)).astype("float32")
BINARY = RNG.integers(0, 2, (N, K)).astype("float32")
PROBABILITIES = RNG.uniform(size=(N, K)).astype("float32")
COLUMN = RNG.integers(0, 2, (N, 1)).astype("float32")
SAME = RNG.integers(0, 3, N).astype("float32")
CASES = {
    "Accuracy": ({}, SAME, RNG.integers(0, 3, N).astype("float32")),
    "BinaryAccuracy": ({"threshold": 0.3}, BINARY, PROBABILITIES),
    "BinaryAccuracy_column": ({}, COLUMN[:, 0], PROBABILITIES[:, :1]),
    "CategoricalAccuracy": ({}, one_hot(LABELS, K), SCORES),
    "SparseCategoricalAccuracy": ({}, LABELS, SCORES),
    "SparseCategoricalAccuracy_column": ({}, LABELS[:, None], SCORES),
    "TopKCategoricalAccuracy": ({"k": 3}, one_hot(LABELS, K), SCORES),
    "SparseTopKCategoricalAccuracy": ({"k": 2}, LABELS, SCORES),
    "MeanSquaredError": ({}, VALUES, PROBABILITIES),
    "RootMeanSquaredError": ({}, VALUES, PROBABILITIES),
    "MeanAbsoluteError": ({}, VALUES, PROBABILITIES),
    "MeanAbsolutePercentageError": ({}, VALUES, PROBABILITIES),
    "MeanSquaredLogarithmicError": ({}, PROBABILITIES * 3, VALUES),
    "LogCoshError": ({}, VALUES * 5, PROBABILITIES),
    "CosineSimilarity": ({}, VALUES, PROBABILITIES),
    "BinaryCrossentropy": ({"label_smoothing": 0.1}, BINARY, PROBABILITIES),
    "BinaryCrossentropy_logits": ({"from_logits": True}, BINARY, VALUES * 4),
    "CategoricalCrossentropy": ({"label_smoothing": 0.2}, one_hot(LABELS, K), SCORES),
    "CategoricalCrossentropy_logits": ({"from_logits": True}, one_hot(LABELS, K), VALUES),
    "SparseCategoricalCrossentropy": ({}, LABELS, SCORES),
    "SparseCategoricalCrossentropy_logits": ({"from_logits": True}, LABELS, VALUES),
    "KLDivergence": ({}, softmax(VALUES), SCORES),
    "Poisson": ({}, SAME[:, None] * np.ones((1, K), "float32"), PROBABILITIES),
    "Hinge": ({}, BINARY, VALUES),
    "SquaredHinge": ({}, BINARY * 2 - 1, VALUES),
    "CategoricalHinge": ({}, one_hot(LABELS, K), VALUES),
    "TruePositives": ({"thresholds": [0.2, 0.7, 0.4]}, BINARY, PROBABILITIES),
    "TrueNegatives": ({}, BINARY, PROBABILITIES),
    "FalsePositives": ({"thresholds": 0.6}, BINARY, PROBABILITIES),
    "FalseNegatives": ({}, BINARY, PROBABILITIES),
    "Precision": ({"thresholds": [0.1, 0.9]}, BINARY, PROBABILITIES),
    "Precision_top": ({"top_k": 2, "class_id": 1}, BINARY, PROBABILITIES),
    "Recall": ({}, BINARY, PROBABILITIES),
    "Recall_class": ({"class_id": 2}, BINARY, PROBABILITIES),
    "AUC": ({}, COLUMN, PROBABILITIES[:, :1]),
    "AUC_wide": ({}, COLUMN, PROBABILITIES[:, :1] * 4 - 1),
    "AUC_pr": ({"curve": "PR", "num_thresholds": 50}, COLUMN, PROBABILITIES[:, :1]),
    "AUC_pr_major": ({"curve": "PR", "summation_method": "majoring"}, COLUMN, PROBABILITIES[:, :1]),
    **{
        f"AUC_gain_{way}": ({"curve": "prgain", "summation_method": way}, COLUMN, PROBABILITIES[:, :1])
        for way in ("interpolation", "minoring", "majoring")
    },
    "AUC_thresholds": ({"thresholds": [0.2, 0.5, 0.6], "summation_method": "minoring"}, COLUMN, PROBABILITIES[:, :1]),
    "AUC_labels": ({"multi_label": True, "label_weights": list(range(1, K + 1))}, BINARY, PROBABILITIES),
    "F1Score": ({}, one_hot(LABELS, K), SCORES),
    "F1Score_weighted": ({"average": "weighted", "threshold": 0.2}, BINARY, PROBABILITIES),
    "FBetaScore": ({"average": "micro", "beta": 2.0}, one_hot(LABELS, K), SCORES),
}
UNWEIGHTED = {"AUC_labels"}  # Keras's multi-label AUC takes no weights of this shape


def gathered(metric, y_true, y_pred, weights, numpy=np.asarray):
    """The result over three batches."""
    for part in slice(0, 10), slice(10, 36), slice(36, None):
        metric.update_state(y_true[part], y_pred[part], *([] if weights is None else [weights[part]]))
    return numpy(metric.result())


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_keras_results(name, weighted):
    keras = import_keras()
    keras.utils.clear_session()
    if weighted and name in UNWEIGHTED:
        pytest.skip("not with weights")
    options, y_true, y_pred = CASES[name]
    kind = name.split("_")[0]
    weights = RNG.uniform(size=N).astype("float32") if weighted else None
    ours, theirs = getattr(metrics, kind)(**options), getattr(keras.metrics, kind)(**options)
    expected = gathered(theirs, y_true, y_pred, weights, keras.ops.convert_to_numpy)
    np.testing.assert_allclose(gathered(ours, y_true, y_pred, weights), expected, rtol=2e-5, atol=1e-6)
    ours.reset_state()
    np.testing.assert_allclose(gathered(ours, y_true, y_pred, weights), expected, rtol=2e-5, atol=1e-6)
    again = metrics.deserialize(metrics.serialize(ours))
    np.testing.assert_array_equal(gathered(again, y_true, y_pred, weights), np.asarray(ours.result()))
    assert again.name == ours.name == theirs.name


@pytest.mark.parametrize("kind", sorted({name.split("_")[0] for name in CASES} | {"Mean", "Sum", "MeanMetricWrapper"}))
def test_arguments_are_keras_arguments(kind):
    keras = import_keras()
    assert arguments(getattr(metrics, kind)) == arguments(getattr(keras.metrics, kind))


def test_auc_cuts_scores_to_0_and_1_unless_thresholds_are_uneven():
    y_true, y_pred = np.array([0, 1, 0, 1]), np.array([-3.0, -2, 0.4, 3])
    cut = np.clip(y_pred, 0, 1)
    for thresholds in None, [0.25, 0.5, 0.75]:
        assert metrics.AUC(thresholds=thresholds)(y_true, y_pred) == metrics.AUC(thresholds=thresholds)(y_true, cut)
    thresholds = [-2.5, 0.5]
    assert metrics.AUC(thresholds=thresholds)(y_true, y_pred) != metrics.AUC(thresholds=thresholds)(y_true, cut)


def test_mean_and_sum():
    mean, total = metrics.Mean(), metrics.Sum()
    assert mean.result() == 0
    for metric in mean, total:
        metric.update_state([1.0, 3.0], sample_weight=[1.0, 0.5])
        metric.update_state(np.array([[2.0, 4.0]]))
    assert mean.result() == pytest.approx((1 + 1.5 + 3) / 2.5)
    assert total.result() == pytest.approx(1 + 1.5 + 6)


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


def test_names():
    assert isinstance(metrics.get("mse"), metrics.MeanSquaredError)
    assert isinstance(metrics.get("AUC"), metrics.AUC)
    assert isinstance(metrics.get("sparse_categorical_accuracy"), metrics.SparseCategoricalAccuracy)
    with pytest.raises(ValueError, match="binary_accuracy"):
        metrics.get("binary_acuracy")


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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_thresholds_are_those_of_the_predictions_dtype(dtype):
    """0.6 is no more than 0.6."""
    for kind in metrics.Precision, metrics.Recall:
        assert kind(thresholds=0.6)([0, 1], np.array([0.6, 0.6], dtype)) == 0
        assert kind(thresholds=0.6)([0, 1], np.array([0.5, 0.61], dtype)) == 1


def test_weights_of_an_ignored_class_do_not_count():
    """As in Keras, where they are masked; without weights all samples are counted."""
    y_pred = np.array([[0.7, 0.3], [0.5, 0.5], [0.1, 0.9]], "float32")
    labels = np.array([0, -1, 1])
    metric = metrics.SparseCategoricalCrossentropy(ignore_class=-1)
    metric.update_state(labels, y_pred, sample_weight=np.array([1.0, 5.0, 3.0], "float32"))
    np.testing.assert_allclose(metric.result(), -(np.log(0.7) + 3 * np.log(0.9)) / 4, rtol=1e-6)
    metric.reset_state()
    metric.update_state(labels[:, None], y_pred)
    np.testing.assert_allclose(metric.result(), -(np.log(0.7) + np.log(0.9)) / 3, rtol=1e-6)


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


@pytest.mark.parametrize("labels", [None, 3])
def test_the_counts_of_several_labels_are_those_of_keras(labels):
    keras = import_keras()
    rng = np.random.default_rng(0)
    y, p = (rng.random((20, 3)) > 0.5).astype("float32"), rng.random((20, 3)).astype("float32")
    ours, theirs = (k.AUC(5, multi_label=True, num_labels=labels) for k in (metrics, keras.metrics))
    for step in range(3):
        if step or labels:
            for name in ours.state_names:
                np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name).numpy(), rtol=1e-6)
        if step == 1:
            ours.reset_state(), theirs.reset_state()
            assert ours.true_positives.shape == (5, 3)
        ours.update_state(y, p), theirs.update_state(y, p)
        np.testing.assert_allclose(ours.result(), float(theirs.result()), rtol=1e-6)
    again = metrics.AUC(5, multi_label=True, num_labels=labels)
    again.set_state(ours.get_state())
    assert again.result() == ours.result()
    with pytest.raises(ValueError, match=r"expected y_pred of shape \(n, 3\), got \(20, 2\)"):
        ours.update_state(y[:, :2], p[:, :2])
