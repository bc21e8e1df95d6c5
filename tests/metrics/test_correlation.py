"""Correlations and R2, beside Keras's."""

import numpy as np
import pytest

from pydtconv import metrics
from tests.metrics.against_keras import PROBABILITIES, VALUES, N, compare

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
CASES = {
    "PearsonCorrelation": ({}, VALUES, PROBABILITIES),
    "PearsonCorrelation_first": ({"axis": 0}, VALUES, PROBABILITIES),
    "ConcordanceCorrelation": ({}, VALUES, PROBABILITIES),
    "R2Score": ({}, VALUES, PROBABILITIES),
    "R2Score_each": ({"class_aggregation": None}, VALUES, PROBABILITIES),
    "R2Score_variance": ({"class_aggregation": "variance_weighted_average"}, VALUES, PROBABILITIES),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras(name, weighted):
    if weighted and name == "PearsonCorrelation_first":
        pytest.skip("one value for each output, none for each sample")
    compare(name, *CASES[name], weighted)


@pytest.mark.parametrize("weights", [None, np.arange(N) % 3.0])
def test_r2_is_adjusted_by_the_number_of_samples(weights):
    """As Keras 3.16 counts them; 3.15 counts the elements of all outputs."""
    plain, adjusted = metrics.R2Score(), metrics.R2Score(num_regressors=2)
    for metric in plain, adjusted:
        metric.update_state(VALUES, PROBABILITIES, weights)
    samples = N if weights is None else np.count_nonzero(weights)
    expected = 1 - (1 - plain.result()) * (samples - 1) / (samples - 3)
    np.testing.assert_allclose(adjusted.result(), expected, rtol=1e-12)
