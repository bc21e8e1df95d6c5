"""Metrics that are means over samples, beside Keras's."""

import numpy as np
import pytest

from pydtconv import metrics
from tests.metrics.against_keras import (
    BINARY,
    COLUMN,
    FOUND,
    LABELS,
    PROBABILITIES,
    SCORES,
    VALUES,
    K,
    compare,
    one_hot,
    softmax,
)

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
CASES = {
    "Accuracy": ({}, LABELS % 3, FOUND % 3),
    "BinaryAccuracy": ({"threshold": 0.3}, BINARY, PROBABILITIES),
    "BinaryAccuracy_column": ({}, COLUMN[:, 0], PROBABILITIES[:, :1]),
    "CategoricalAccuracy": ({}, one_hot(LABELS), SCORES),
    "SparseCategoricalAccuracy": ({}, LABELS, SCORES),
    "SparseCategoricalAccuracy_column": ({}, LABELS[:, None], SCORES),
    "TopKCategoricalAccuracy": ({"k": 3}, one_hot(LABELS), SCORES),
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
    "CategoricalCrossentropy": ({"label_smoothing": 0.2}, one_hot(LABELS), SCORES),
    "CategoricalCrossentropy_logits": ({"from_logits": True}, one_hot(LABELS), VALUES),
    "SparseCategoricalCrossentropy": ({}, LABELS, SCORES),
    "SparseCategoricalCrossentropy_logits": ({"from_logits": True}, LABELS, VALUES),
    "KLDivergence": ({}, softmax(VALUES), SCORES),
    "Poisson": ({}, (LABELS % 3)[:, None] * np.ones((1, K), "float32"), PROBABILITIES),
    "Hinge": ({}, BINARY, VALUES),
    "SquaredHinge": ({}, BINARY * 2 - 1, VALUES),
    "CategoricalHinge": ({}, one_hot(LABELS), VALUES),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras(name, weighted):
    compare(name, *CASES[name], weighted)


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
