"""Functions of metrics beside Keras's: a value for each sample."""

import inspect

import numpy as np
import pytest

from pydtconv import metrics
from pydtconv.metrics import functions
from tests.metrics.against_keras import LABELS, SCORES, one_hot
from tests.real_keras import import_keras

PUBLIC = sorted(
    name
    for name, value in vars(functions).items()
    if inspect.isfunction(value) and list(inspect.signature(value).parameters)[:2] == ["y_true", "y_pred"]
    if not name.startswith("_") and hasattr(metrics, name)
)


@pytest.mark.parametrize("name", PUBLIC)
def test_values_are_those_of_keras(name):
    theirs = getattr(import_keras().metrics, name)
    y_true = LABELS if name.startswith("sparse") else one_hot(LABELS)
    expected = np.asarray(theirs(y_true, SCORES))
    found = getattr(metrics, name)(y_true, SCORES)
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_names():
    assert isinstance(metrics.get("mse"), metrics.MeanSquaredError)
    assert isinstance(metrics.get("AUC"), metrics.AUC)
    assert isinstance(metrics.get("sparse_categorical_accuracy"), metrics.SparseCategoricalAccuracy)
    with pytest.raises(ValueError, match="binary_accuracy"):
        metrics.get("binary_acuracy")
