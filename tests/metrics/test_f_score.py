"""F scores, beside Keras's."""

import numpy as np
import pytest

from pydtconv import metrics
from tests.metrics.against_keras import BINARY, LABELS, PROBABILITIES, SCORES, K, compare, one_hot

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
CASES = {
    "F1Score": ({}, one_hot(LABELS), SCORES),
    "F1Score_weighted": ({"average": "weighted", "threshold": 0.2}, BINARY, PROBABILITIES),
    "FBetaScore": ({"average": "micro", "beta": 2.0}, one_hot(LABELS), SCORES),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras(name, weighted):
    compare(name, *CASES[name], weighted)


def test_weights_of_f_scores_may_be_of_classes():
    """As in Keras 3.16: labels (n, classes) with weights of this shape; of one class they are those of its samples."""
    score = metrics.FBetaScore(threshold=0.5)
    score.update_state(BINARY, PROBABILITIES, SCORES)
    for c in range(K):
        single = metrics.FBetaScore(threshold=0.5)
        single.update_state(BINARY[:, c : c + 1], PROBABILITIES[:, c : c + 1], SCORES[:, c])
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
