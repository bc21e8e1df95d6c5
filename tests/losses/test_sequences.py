"""Connectionist temporal classification: the loss of Keras, by hand, and as the loss of a model."""

import itertools

import numpy as np
import pytest

import pydtconv as our_keras
from pydtconv import layers, losses, ops
from tests.real_keras import import_keras

RANDOM = np.random.default_rng(5)
LOGITS = RANDOM.standard_normal((3, 6, 4)).astype("float32")
LABELS = np.array([[1, 2, 0], [3, 3, 0], [2, 0, 0]], "int32")


def probability(labels, logits):
    """The sum over all sequences of classes that become the labels without repetitions and blanks."""
    p = np.exp(logits.astype("float64"))
    p /= p.sum(-1, keepdims=True)
    total = 0.0
    for way in itertools.product(range(p.shape[1]), repeat=len(p)):
        merged = [c for c, _ in itertools.groupby(way) if c != 0]
        if merged == list(labels):
            total += np.prod(p[np.arange(len(p)), way])
    return total


def test_all_ways_are_counted():
    expected = [-np.log(probability(row[row > 0], x)) for row, x in zip(LABELS, LOGITS, strict=True)]
    np.testing.assert_allclose(losses.ctc(LABELS, LOGITS), expected, rtol=1e-5)


def test_the_best_sequences_have_the_greatest_probabilities():
    decoded, scores = ops.ctc_decode(LOGITS[:, :4], [4, 4, 4], strategy="beam_search", beam_width=400, top_paths=5)
    for sample, x in enumerate(LOGITS[:, :4]):
        sequences = [s for n in range(5) for s in itertools.product((1, 2, 3), repeat=n)]
        ranked = sorted(sequences, key=lambda labels: -probability(labels, x))
        for path, labels in enumerate(ranked[:5]):
            assert [c for c in decoded[path, sample].tolist() if c >= 0] == list(labels)
            np.testing.assert_allclose(scores[sample, path], np.log(probability(labels, x)), rtol=1e-4)


def test_too_few_steps_have_no_probability():
    assert np.isinf(ops.ctc_loss([[1, 1]], LOGITS[:1], [2], [2])).all()
    np.testing.assert_array_equal(ops.ctc_loss([[1]], LOGITS[:1], [0], [0]), [0.0])


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "none"])
def test_as_keras_has_it(reduction):
    keras = import_keras()
    weights = np.array([1.0, 0.5, 2.0], "float32")
    theirs, ours = keras.losses.CTC(reduction=reduction), losses.CTC(reduction=reduction)
    np.testing.assert_allclose(ours(LABELS, LOGITS), theirs(LABELS, LOGITS), rtol=1e-5)
    np.testing.assert_allclose(ours(LABELS, LOGITS, weights), theirs(LABELS, LOGITS, weights), rtol=1e-5)
    assert ours.get_config() == theirs.get_config()
    assert losses.get("ctc") is losses.ctc


def test_a_model_learns_sequences(tmp_path):
    images = np.zeros((60, 4, 12, 1), "float32")
    labels = RANDOM.integers(1, 4, (60, 2))
    for image, row in zip(images, labels, strict=True):
        image[row[0], 1:5] = image[row[1], 7:11] = 1  # a bar in the row of each label
    inputs = our_keras.Input((4, 12, 1))
    x = layers.Permute((2, 1, 3))(inputs)
    x = layers.Reshape((12, 4))(x)
    model = our_keras.Model(inputs, layers.Dense(4)(layers.Conv1D(16, 3, padding="same", activation="relu")(x)))
    model.compile(our_keras.optimizers.Adam(0.03), losses.CTC())
    losses_seen = model.fit(images, labels, epochs=40, batch_size=20, verbose=0).history["loss"]
    assert losses_seen[-1] < 0.1 * losses_seen[0]
    decoded, _ = ops.ctc_decode(model.predict(images, verbose=0), np.full(60, 12), strategy="greedy")
    assert (decoded[0, :, :2] == labels).mean() > 0.95
    model.save(tmp_path / "m.keras")
    again = our_keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(again.evaluate(images, labels, verbose=0), model.evaluate(images, labels, verbose=0))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: losses.ctc(LABELS[0], LOGITS), r"expected y_true \(n, labels\).*got shapes \(3,\)"),
        (lambda: ops.ctc_loss(LABELS, LOGITS, [4, 1, 1], [6, 6, 6]), "target_length: expected 0 to 3, got 1 to 4"),
        (lambda: ops.ctc_loss(LABELS, LOGITS, [1, 1, 1], [7, 6, 6]), "output_length: expected 0 to 6, got 6 to 7"),
        (lambda: ops.ctc_loss(LABELS + 2, LOGITS, [3, 1, 1], [6, 6, 6]), "target: expected classes from 0 to 3"),
        (lambda: ops.ctc_loss(LABELS, LOGITS, [3, 1, 1], [6, 6, 6], mask_index=4), r"mask_index in \[0, 4\), got 4"),
        (lambda: ops.ctc_decode(LOGITS, [6, 6]), "expected 3 sequence_lengths, got 2"),
        (lambda: ops.ctc_decode(LOGITS[0], [6]), r"got \(6, 4\) and \(1,\)"),
        (lambda: ops.ctc_loss(LABELS, LOGITS, [1, 1], [6, 6, 6]), "as many samples of each, got .* of 3, 3, 2, 3"),
        (lambda: ops.ctc_decode(LOGITS, [6, 6, 6], strategy="best"), "'greedy' or 'beam_search', got 'best'"),
    ],
)
def test_bad_arguments(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_classes_of_fit_are_checked():
    model = our_keras.Sequential([our_keras.Input((6, 4)), layers.Dense(4)])
    model.compile("sgd", losses.CTC())
    with pytest.raises(ValueError, match=r"expected classes from 0 \(the blank\) to 3, got 0 to 5"):
        model.fit(LOGITS, LABELS + 2 * (LABELS > 2), verbose=0)


def test_decoded_within_a_model():
    inputs = our_keras.Input((6, 4))
    model = our_keras.Model(inputs, ops.ctc_decode(inputs, np.array([6, 5, 6]))[0][0])
    np.testing.assert_array_equal(model.predict(LOGITS, verbose=0), ops.ctc_decode(LOGITS, [6, 5, 6])[0][0])
