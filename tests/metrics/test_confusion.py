"""Metrics of counts by thresholds, beside Keras's."""

import numpy as np
import pytest

from pydtconv import metrics
from tests.metrics.against_keras import BINARY, PROBABILITIES, compare

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
CASES = {
    "TruePositives": ({"thresholds": [0.2, 0.7, 0.4]}, BINARY, PROBABILITIES),
    "TrueNegatives": ({}, BINARY, PROBABILITIES),
    "FalsePositives": ({"thresholds": 0.6}, BINARY, PROBABILITIES),
    "FalseNegatives": ({}, BINARY, PROBABILITIES),
    "Precision": ({"thresholds": [0.1, 0.9]}, BINARY, PROBABILITIES),
    "Precision_top": ({"top_k": 2, "class_id": 1}, BINARY, PROBABILITIES),
    "Recall": ({}, BINARY, PROBABILITIES),
    "Recall_class": ({"class_id": 2}, BINARY, PROBABILITIES),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras(name, weighted):
    compare(name, *CASES[name], weighted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_thresholds_are_those_of_the_predictions_dtype(dtype):
    """0.6 is no more than 0.6."""
    for kind in metrics.Precision, metrics.Recall:
        assert kind(thresholds=0.6)([0, 1], np.array([0.6, 0.6], dtype)) == 0
        assert kind(thresholds=0.6)([0, 1], np.array([0.5, 0.61], dtype)) == 1
