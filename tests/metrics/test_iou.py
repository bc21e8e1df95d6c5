"""Intersection over union, beside Keras's."""

import pytest

from tests.metrics.against_keras import BINARY, FOUND, LABELS, PROBABILITIES, SCORES, K, compare, one_hot

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
CASES = {
    "IoU": ({"num_classes": K, "target_class_ids": [0, 2]}, LABELS, FOUND),
    "IoU_ignored": ({"num_classes": K, "target_class_ids": [1], "ignore_class": 2}, LABELS, FOUND),
    "BinaryIoU": ({}, BINARY[:, 0], PROBABILITIES[:, 0]),
    "BinaryIoU_threshold": ({"target_class_ids": [1], "threshold": 0.3}, BINARY[:, 0], PROBABILITIES[:, 0]),
    "MeanIoU": ({"num_classes": K}, LABELS, FOUND),
    "MeanIoU_scores": ({"num_classes": K, "sparse_y_pred": False}, LABELS, SCORES),
    "OneHotIoU": ({"num_classes": K, "target_class_ids": [0, 3]}, one_hot(LABELS), SCORES),
    "OneHotMeanIoU": ({"num_classes": K}, one_hot(LABELS), SCORES),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras(name, weighted):
    compare(name, *CASES[name], weighted, FOUND)  # whole numbers, to which Keras on torch rounds others
