"""One rate where another one is at least so much, beside Keras's."""

import pytest

from tests.metrics.against_keras import BINARY, LABELS, PROBABILITIES, SCORES, compare, one_hot

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
CASES = {
    "SensitivityAtSpecificity": ({"specificity": 0.4}, BINARY, PROBABILITIES),
    "SensitivityAtSpecificity_few": ({"specificity": 0.4, "num_thresholds": 5}, BINARY, PROBABILITIES),
    "SpecificityAtSensitivity": ({"sensitivity": 0.4}, BINARY, PROBABILITIES),
    "SpecificityAtSensitivity_class": ({"sensitivity": 0.4, "class_id": 1}, one_hot(LABELS), SCORES),
    "PrecisionAtRecall": ({"recall": 0.4}, BINARY, PROBABILITIES),
    "PrecisionAtRecall_one": ({"recall": 0.4, "num_thresholds": 1}, BINARY, PROBABILITIES),
    "RecallAtPrecision": ({"precision": 0.4}, BINARY, PROBABILITIES),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras(name, weighted):
    compare(name, *CASES[name], weighted)
