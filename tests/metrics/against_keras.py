"""The data of the tests of metrics, and the comparison with Keras's over batches."""

import numpy as np

from pydtconv import metrics
from tests.real_keras import import_keras

RNG = np.random.default_rng(3)
N, K = 37, 7


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def one_hot(labels):
    return np.eye(K, dtype="float32")[labels]


LABELS, FOUND = RNG.integers(0, K, (2, N))
SCORES = softmax(RNG.normal(size=(N, K))).astype("float32")
VALUES = RNG.normal(size=(N, K)).astype("float32")
BINARY = RNG.integers(0, 2, (N, K)).astype("float32")
PROBABILITIES = RNG.uniform(size=(N, K)).astype("float32")
COLUMN = RNG.integers(0, 2, (N, 1)).astype("float32")
WEIGHTS = RNG.uniform(size=N).astype("float32")


def of_batches(metric, y_true, y_pred, weights):
    """The result over three batches of unequal size."""
    for part in slice(0, 10), slice(10, 35), slice(35, None):
        metric.update_state(y_true[part], y_pred[part], *([] if weights is None else [weights[part]]))
    result = metric.result()
    return np.asarray(result.detach() if hasattr(result, "detach") else result)


def compare(name, options, y_true, y_pred, weighted, weights=WEIGHTS):
    """The metric, again after a reset, and one of its config, beside Keras's; `name` may end in _ and a word."""
    keras = import_keras()
    keras.utils.clear_session(free_memory=False)
    kind, weights = name.split("_")[0], weights if weighted else None
    ours, theirs = getattr(metrics, kind)(**options), getattr(keras.metrics, kind)(**options)
    expected = of_batches(theirs, y_true, y_pred, weights)
    np.testing.assert_allclose(of_batches(ours, y_true, y_pred, weights), expected, rtol=2e-5, atol=1e-6)
    ours.reset_state()
    np.testing.assert_allclose(of_batches(ours, y_true, y_pred, weights), expected, rtol=2e-5, atol=1e-6)
    again, filled = (metrics.deserialize(metrics.serialize(ours)) for _ in range(2))
    np.testing.assert_array_equal(of_batches(again, y_true, y_pred, weights), np.asarray(ours.result()))
    filled.set_state(ours.get_state())
    np.testing.assert_array_equal(np.asarray(filled.result()), np.asarray(ours.result()))
    assert again.name == ours.name == theirs.name
