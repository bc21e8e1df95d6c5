"""`tf.data`: pipelines give what TensorFlow documents."""

import numpy as np
import pytest

from pydtconv.compat.tensorflow.data import Dataset
from pydtconv.compat.tensorflow.transformations import AUTOTUNE


def values(dataset):
    return [np.asarray(each).tolist() for each in dataset]


def test_pipelines_give_what_tensorflow_documents():
    numbers = Dataset.range(10)
    assert values(numbers.batch(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert values(numbers.batch(4, drop_remainder=True).map(lambda x: x * 2)) == [[0, 2, 4, 6], [8, 10, 12, 14]]
    assert values(numbers.skip(2).take(3).repeat(2)) == [2, 3, 4, 2, 3, 4]
    assert values(numbers.filter(lambda x: x % 5 == 0).concatenate(Dataset.range(2))) == [0, 5, 0, 1]
    assert values(numbers.batch(3).unbatch().prefetch(AUTOTUNE)) == list(range(10))
    assert sorted(values(numbers.shuffle(4, seed=1))) == list(range(10)) != values(numbers.shuffle(4, seed=1))
    pairs = Dataset.zip((numbers, Dataset.from_tensor_slices({"a": np.arange(3)})))
    assert [(int(i), int(d["a"])) for i, d in pairs] == [(0, 0), (1, 1), (2, 2)]
    assert [int(i) + int(x) for i, x in numbers.take(3).enumerate(start=5)] == [5, 7, 9]
    assert int(numbers.reduce(0, lambda state, x: state + x)) == 45


def test_batches_of_arrays_of_different_lengths_are_padded():
    lengths = Dataset.range(1, 4).map(lambda n: np.full(int(n), int(n)))
    assert values(lengths.padded_batch(2)) == [[[1, 0], [2, 2]], [[3, 3, 3]]]
    assert values(lengths.padded_batch(2, [4], -1, drop_remainder=True)) == [[[1, -1, -1, -1], [2, 2, -1, -1]]]
    pairs = lengths.map(lambda x: {"x": x, "n": len(x)})
    (batch,) = pairs.padded_batch(3, padded_shapes={"x": [None], "n": []})
    assert (np.asarray(batch["x"]).shape, np.asarray(batch["n"]).tolist()) == ((3, 3), [1, 2, 3])
    with pytest.raises(ValueError, match=r"expected extents that hold \(3,\), got \[2\]"):
        list(lengths.padded_batch(3, [2]))


def test_cardinality_follows_from_the_steps():
    numbers = Dataset.range(10)
    known = {
        10: numbers, 3: numbers.batch(4), 2: numbers.batch(4, True), 20: numbers.repeat(2), 7: numbers.skip(3),
        -1: numbers.repeat(), -2: numbers.filter(bool), 5: numbers.repeat().take(5),
    }  # fmt: skip
    for count, dataset in known.items():
        assert int(dataset.cardinality()) == count
        assert dataset.num_batches == (count if count >= 0 else None)
    with pytest.raises(TypeError, match="infinite"):
        len(numbers.repeat())


def test_shuffling_is_anew_in_each_round_and_a_cache_is_not():
    shuffled = Dataset.range(20).shuffle(20)
    assert values(shuffled) != values(shuffled)
    kept = Dataset.range(20).shuffle(20, reshuffle_each_iteration=False)
    assert values(kept) == values(kept)
    calls = []
    cached = Dataset.range(3).map(lambda x: calls.append(1) or x).cache()
    assert values(cached) == values(cached) == [0, 1, 2]
    assert len(calls) == 3


def test_errors_of_threads_and_missing_names_are_told():
    def bad(x):
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        list(Dataset.range(3).map(bad).prefetch(1))
    with pytest.raises(AttributeError, match=r"pydtconv has no tf\.data\.Dataset\.windows; the nearest .*\.window"):
        Dataset.range(3).windows(2)
    with pytest.raises(ValueError, match="arrays of one length"):
        Dataset.from_tensor_slices((np.zeros(2), np.zeros(3)))


def test_what_fails_in_a_pipeline_is_told_where_its_spec_is_asked_for():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = Dataset.range(3).map(lambda x: x.nothing).element_spec


def test_pipelines_of_pipelines():
    numbers = Dataset.range(5)
    assert values(numbers.batch(2).rebatch(3)) == [[0, 1, 2], [3, 4]]
    assert values(numbers.batch(2).rebatch(3, drop_remainder=True)) == [[0, 1, 2]]
    assert values(numbers.flat_map(lambda n: Dataset.range(int(n)))) == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]
    # as tf.data's documentation has it
    repeated = Dataset.range(1, 6).interleave(lambda n: Dataset.from_tensors(n).repeat(6), 2, 4)
    assert values(repeated) == [1] * 4 + [2] * 4 + [1] * 2 + [2] * 2 + [3] * 4 + [4] * 4 + [3] * 2 + [4] * 2 + [5] * 6
    assert values(numbers.shard(2, 1)) == [1, 3]
    assert int(numbers.shard(2, 0).cardinality()) == 3
    mixed = Dataset.sample_from_datasets([numbers, Dataset.range(10, 13)], weights=[0.5, 0.5], seed=1)
    assert sorted(values(mixed)) == [0, 1, 2, 3, 4, 10, 11, 12]
    assert set(values(Dataset.sample_from_datasets([numbers.repeat(), numbers], [0.0, 1.0]))) == set(range(5))
