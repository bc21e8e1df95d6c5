"""Metrics and losses of overlap, correlation and constraints beside Keras's: results over batches, signatures."""

import inspect

import numpy as np
import pytest

import pydtconv
from pydtconv import losses, metrics
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

RANDOM = np.random.default_rng(5)
LABELS, FOUND = RANDOM.integers(0, 4, (2, 20)), RANDOM.integers(0, 4, (2, 20))
BINARY, SCORES = RANDOM.integers(0, 2, (2, 20)), RANDOM.random((2, 20), np.float32)
HOT = np.eye(4, dtype="float32")[LABELS]
CLASSES = RANDOM.random((2, 20, 4), np.float32)
VALUES, GUESSES = RANDOM.random((2, 20, 3), np.float32), RANDOM.random((2, 20, 3), np.float32)
CASES = {
    "IoU": [((4, [0, 2]), {}, LABELS, FOUND), ((4, [1]), {"ignore_class": 2}, LABELS, FOUND)],
    "BinaryIoU": [((), {}, BINARY, SCORES), (([1], 0.3), {}, BINARY, SCORES)],
    "MeanIoU": [((4,), {}, LABELS, FOUND), ((4,), {"sparse_y_pred": False}, LABELS, CLASSES)],
    "OneHotIoU": [((4, [0, 3]), {}, HOT, CLASSES)],
    "OneHotMeanIoU": [((4,), {}, HOT, CLASSES)],
    "PearsonCorrelation": [((), {"axis": 0}, VALUES, GUESSES)],
    "ConcordanceCorrelation": [((), {}, VALUES, GUESSES)],
    "R2Score": [
        *(((), {"class_aggregation": way}, VALUES, GUESSES) for way in ("uniform_average", None)),
        ((), {"class_aggregation": "variance_weighted_average"}, VALUES, GUESSES),
    ],
    "SensitivityAtSpecificity": [((0.4,), {}, BINARY, SCORES), ((0.4,), {"num_thresholds": 5}, BINARY, SCORES)],
    "SpecificityAtSensitivity": [((0.4,), {}, BINARY, SCORES), ((0.4,), {"class_id": 1}, HOT, CLASSES)],
    "PrecisionAtRecall": [((0.4,), {}, BINARY, SCORES), ((0.4,), {"num_thresholds": 1}, BINARY, SCORES)],
    "RecallAtPrecision": [((0.4,), {}, BINARY, SCORES)],
}
UNIT = VALUES[0] / np.linalg.norm(VALUES[0], axis=-1, keepdims=True)
LOSSES = {
    "Dice": [((), {}, VALUES, GUESSES), ((), {"axis": (1, 2)}, VALUES, GUESSES)],
    "Tversky": [((0.3, 0.7), {}, VALUES, GUESSES)],
    "CategoricalGeneralizedCrossEntropy": [((0.4,), {}, LABELS, CLASSES / CLASSES.sum(-1, keepdims=True))],
    "Circle": [((), {}, LABELS[0], UNIT), ((20.0, 0.3), {"remove_diagonal": False}, LABELS[0], UNIT)],
}


def number(value):
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


@pytest.mark.parametrize("name", CASES)
def test_metric(name):
    keras = import_keras()
    for args, kwargs, targets, outputs in CASES[name]:
        theirs, ours = (getattr(module, name)(*args, **kwargs) for module in (keras.metrics, metrics))
        for y_true, y_pred in zip(targets, outputs, strict=True):
            theirs.update_state(y_true, y_pred)
            ours.update_state(y_true, y_pred)
        np.testing.assert_allclose(ours.result(), number(theirs.result()), rtol=2e-5, atol=1e-6)
        again = type(ours).from_config(ours.get_config())
        again.set_state(ours.get_state())
        np.testing.assert_allclose(again.result(), ours.result())
        ours.reset_state()
        ours.update_state(targets[0], outputs[0])
        theirs.reset_state()
        theirs.update_state(targets[0], outputs[0])
        np.testing.assert_allclose(ours.result(), number(theirs.result()), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    keras = import_keras()
    for args, kwargs, y_true, y_pred in LOSSES[name]:
        expected = number(getattr(keras.losses, name)(*args, **kwargs)(y_true, y_pred))
        ours = getattr(losses, name)(*args, **kwargs)
        np.testing.assert_allclose(ours(y_true, y_pred), expected, rtol=2e-5)
        again = losses.deserialize(losses.serialize(ours))
        np.testing.assert_allclose(again(y_true, y_pred), expected, rtol=2e-5)


@pytest.mark.parametrize("module", [losses, metrics], ids=["losses", "metrics"])
def test_signatures(module):
    theirs = getattr(import_keras(), module.__name__.split(".")[-1])
    different = []
    for name in module.__all__:
        if not hasattr(theirs, name) or not callable(getattr(theirs, name)):
            continue
        ours, wanted = (
            [(p.name, p.default) for p in inspect.signature(getattr(m, name)).parameters.values()]
            for m in (module, theirs)
        )
        if ours != wanted:
            different.append(f"{name}: expected {wanted}, got {ours}")
    assert not different, "\n".join(different)


@pytest.mark.parametrize("weights", [None, np.arange(20.0) % 3])
def test_r2_is_adjusted_by_the_number_of_samples(weights):
    """As Keras 3.16 counts them; 3.15 counts the elements of all outputs."""
    plain, adjusted = metrics.R2Score(), metrics.R2Score(num_regressors=2)
    for metric in plain, adjusted:
        metric.update_state(VALUES[0], GUESSES[0], weights)
    samples = 20 if weights is None else np.count_nonzero(weights)
    expected = 1 - (1 - plain.result()) * (samples - 1) / (samples - 3)
    np.testing.assert_allclose(adjusted.result(), expected, rtol=1e-12)


def test_weights_of_f_scores_may_be_of_classes():
    """As in Keras 3.16: labels (n, classes) with weights of this shape; of one class they are those of its samples."""
    weights = RANDOM.random((20, 4), np.float32)
    score = metrics.FBetaScore(threshold=0.5)
    score.update_state(HOT[0], CLASSES[0], weights)
    for c in range(4):
        single = metrics.FBetaScore(threshold=0.5)
        single.update_state(HOT[0][:, c : c + 1], CLASSES[0][:, c : c + 1], weights[:, c])
        np.testing.assert_allclose(score.result()[c], single.result()[0], rtol=1e-6)


@pytest.mark.parametrize("beta", [1, -0.5, 0.0, None, "1.0"])
def test_beta_is_a_positive_float(beta):
    with pytest.raises(ValueError, match="FBetaScore: expected beta to be a positive float"):
        metrics.FBetaScore(beta=beta)


@pytest.mark.parametrize("make", [metrics.FBetaScore, metrics.F1Score])
@pytest.mark.parametrize("threshold", [1, 2.0, 0.0, -0.5, "0.5"])
def test_the_threshold_of_an_f_score_is_a_float_up_to_1(make, threshold):
    with pytest.raises(ValueError, match="threshold: expected None or a float above 0 and up to 1"):
        make(threshold=threshold)


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
    metric.update_state(VALUES, GUESSES)
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
