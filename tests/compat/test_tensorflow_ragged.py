"""`tf.ragged`: rows of different lengths, which lookups take.  What is expected holds for TensorFlow 2.21, too."""

import numpy as np
import pytest

WORDS = [["cs.CV"], ["cs.LG", "stat.ML"], [], ["cs.LG", "cs.AI", "new"]]


def test_rows(tf):
    r = tf.ragged.constant([[1, 2, 3], [], [4]])
    assert (r.shape.as_list(), r.dtype, len(r.values), int(r.nrows())) == ([3, None], tf.int32, 4, 3)
    assert r.row_splits.numpy().tolist() == [0, 3, 3, 4]
    assert r.row_lengths().numpy().tolist() == [3, 0, 1]
    assert r.to_list() == [[1, 2, 3], [], [4]]
    assert r.to_tensor().numpy().tolist() == [[1, 2, 3], [0, 0, 0], [4, 0, 0]]
    assert r.to_tensor(-1, shape=(None, 2)).numpy().tolist() == [[1, 2], [-1, -1], [4, -1]]
    assert r.to_tensor(shape=(4, 4)).numpy().tolist() == [[1, 2, 3, 0], [0] * 4, [4, 0, 0, 0], [0] * 4]
    assert (r[0].numpy().tolist(), r[-1].numpy().tolist(), r[1:].to_list()) == ([1, 2, 3], [4], [[], [4]])
    assert [row.numpy().tolist() for row in r] == r.to_list()
    assert [row.tolist() for row in r.numpy()] == r.to_list()
    assert tf.cast(r, tf.float32).to_list() == [[1.0, 2.0, 3.0], [], [4.0]]
    assert tf.ragged.map_flat_values(lambda x, y: x * y + 1, r, r).to_list() == [[2, 5, 10], [], [17]]
    assert r.with_values(r.values * 2).to_list() == [[2, 4, 6], [], [8]]
    assert isinstance(r, tf.RaggedTensor)


def test_how_they_are_made(tf):
    values = np.arange(8).reshape(4, 2)
    for r in (
        tf.RaggedTensor.from_row_splits(values, [0, 1, 4]),
        tf.RaggedTensor.from_row_lengths(values, row_lengths=[1, 3]),
    ):
        assert (r.shape.as_list(), r.to_list()) == ([2, None, 2], [[[0, 1]], [[2, 3], [4, 5], [6, 7]]])
        assert r.to_tensor().shape == (2, 3, 2)
    texts = tf.ragged.constant(np.array(WORDS, object))
    assert texts.to_list()[1] == [b"cs.LG", b"stat.ML"]
    assert texts.to_tensor().numpy()[0].tolist() == [b"cs.CV", b"", b""]
    assert tf.ragged.constant([[], []]).dtype == tf.float32
    assert tf.ragged.constant([[1.5], [2]], dtype=tf.float64).dtype == tf.float64


def test_words_that_are_looked_up(tf):
    words = tf.ragged.constant(WORDS)
    for mode, wanted in (
        ("multi_hot", [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 1]]),
        ("int", None),
        ("count", [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 1]]),
    ):
        lookup = tf.keras.layers.StringLookup(output_mode=mode, vocabulary=["cs.LG", "cs.CV", "x", "cs.AI"])
        found = lookup(tf.ragged.constant([row[:1] if row == WORDS[1] else row for row in WORDS]))
        if wanted is None:
            assert found.to_list() == [[2], [1], [], [1, 4, 0]]
        else:
            np.testing.assert_array_equal(found.numpy(), wanted)
    lookup = tf.keras.layers.StringLookup(output_mode="multi_hot")
    lookup.adapt(words)
    assert lookup.get_vocabulary()[:2] == ["[UNK]", "cs.LG"]
    assert sorted(lookup.get_vocabulary()) == sorted(["[UNK]", "cs.LG", "cs.CV", "stat.ML", "cs.AI", "new"])
    assert lookup(words).numpy().sum(1).tolist() == [1, 2, 0, 3]
    numbers = tf.keras.layers.IntegerLookup(vocabulary=[5, 7])
    assert numbers(tf.ragged.constant([[7], [5, 9]])).to_list() == [[2], [1, 0]]


def test_slices_of_a_data_set(tf):
    words, labels = tf.ragged.constant(WORDS), np.arange(4)
    found = [(x.numpy().tolist(), int(y)) for x, y in tf.data.Dataset.from_tensor_slices((words, labels))]
    assert found[1:3] == [([b"cs.LG", b"stat.ML"], 1), ([], 2)]


# what follows is not so in TensorFlow


def test_refused(tf):
    r = tf.ragged.constant([[1.0], [2.0, 3.0]])
    with pytest.raises(NotImplementedError, match="one axis is ragged here"):
        tf.ragged.constant([[[1], [2, 3]]])
    with pytest.raises(ValueError, match="rise from 0 to 3"):
        tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2])
    with pytest.raises(NotImplementedError, match=r"expected a tensor, got a RaggedTensor: to_tensor\(\)"):
        tf.reduce_sum(r, axis=1)
    with pytest.raises(ValueError, match="axis: expected 1"):
        r.row_lengths(axis=2)
    with pytest.raises(ValueError, match="rows of the same lengths"):
        tf.ragged.map_flat_values(tf.add, r, r[::-1])
    with pytest.raises(ValueError, match=r"shape: expected \(rows, columns"):
        tf.RaggedTensor.from_row_lengths(np.ones((2, 3)), [2]).to_tensor(shape=(1, 2, 4))
    with pytest.raises(AttributeError, match="tensors have one extent along each axis"):
        tf.ragged.boolean_mask  # noqa: B018
    for operator in (lambda: r + 1, lambda: 2 * r, lambda: -r, lambda: r / r, lambda: r > 1):
        with pytest.raises(NotImplementedError, match="operators of a RaggedTensor: expected a tensor"):
            operator()
    with pytest.raises(NotImplementedError, match=r"expected one row or a slice of rows, got \(0, 1\)"):
        r[0, 1]
