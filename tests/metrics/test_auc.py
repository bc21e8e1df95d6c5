"""AUC beside Keras's: curves, ways to add up, thresholds, labels."""

import numpy as np
import pytest

from pydtconv import metrics
from tests.metrics.against_keras import BINARY, COLUMN, PROBABILITIES, K, compare
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
CASES = {
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
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras(name, weighted):
    if weighted and name == "AUC_labels":
        pytest.skip("Keras's multi-label AUC takes no weights of this shape")
    compare(name, *CASES[name], weighted)


def test_auc_cuts_scores_to_0_and_1_unless_thresholds_are_uneven():
    y_true, y_pred = np.array([0, 1, 0, 1]), np.array([-3.0, -2, 0.4, 3])
    cut = np.clip(y_pred, 0, 1)
    for thresholds in None, [0.25, 0.5, 0.75]:
        assert metrics.AUC(thresholds=thresholds)(y_true, y_pred) == metrics.AUC(thresholds=thresholds)(y_true, cut)
    thresholds = [-2.5, 0.5]
    assert metrics.AUC(thresholds=thresholds)(y_true, y_pred) != metrics.AUC(thresholds=thresholds)(y_true, cut)


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
