"""Hashing and HashedCrossing: the examples of Keras's documentation, and fingerprints of other implementations."""

import numpy as np
import pytest

from pydtconv import Model, layers
from pydtconv.support.fingerprints import fingerprint64, siphash24

LETTERS = [["A"], ["B"], ["C"], ["D"], ["E"]]

#: length: Fingerprint64 of that many characters from "!" on, by the package pyfarmhash
FINGERPRINTS = {
    0: 0x9AE16A3B2F90404F, 1: 0xEBBF7FF11EFF54B2, 3: 0x8D75199F2054185A, 4: 0xA026D3549F67DB7C,
    7: 0x7C19624C3509FEEC, 8: 0xDFED035E9D166FFF, 16: 0xFDBD9662EDE16DA2, 17: 0xB32543DC7720287A,
    32: 0x77244ED6F5DD7CBA, 33: 0x1A0A789ADE487ECD, 64: 0x5092183599ED09C9, 65: 0x9C2C065FAECA6681,
    128: 0xC4E01B4B440F8910, 129: 0x382367AA5946D556, 200: 0x5862EF82192B0A47,
}  # fmt: skip


@pytest.mark.parametrize("length", FINGERPRINTS)
def test_fingerprints(length):
    assert fingerprint64(bytes(33 + i % 90 for i in range(length))) == FINGERPRINTS[length]


def test_siphash_of_its_paper():
    key = int.from_bytes(bytes(range(8)), "little"), int.from_bytes(bytes(range(8, 16)), "little")
    assert siphash24(key, bytes(range(15))) == 0xA129CA6149BE45E5


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, [1, 0, 1, 1, 2]), ({"salt": [133, 137]}, [1, 2, 1, 0, 2]), ({"salt": 133}, [0, 0, 2, 1, 0])],
)
def test_bins_are_those_that_keras_documents(options, expected):
    layer = layers.Hashing(3, **options)
    np.testing.assert_array_equal(layer(LETTERS), np.array(expected)[:, None])
    again = layers.Hashing.from_config(layer.get_config())
    np.testing.assert_array_equal(again(np.array(LETTERS)), layer(LETTERS))


def test_what_is_masked_has_a_bin_of_its_own():
    found = layers.Hashing(3, mask_value="")([["A"], ["B"], [""], ["C"], ["D"]])
    np.testing.assert_array_equal(found, [[1], [1], [0], [2], [2]])
    np.testing.assert_array_equal(layers.Hashing(1, mask_value=3)(np.array([3, 4])), [0, 0])


def test_integers_are_hashed_as_text():
    layer = layers.Hashing(1000)
    np.testing.assert_array_equal(layer(np.array([12, -7])), layer(["12", "-7"]))
    np.testing.assert_array_equal(layer(np.array([b"12", b"-7"])), layer(["12", "-7"]))


def test_bins_as_vectors():
    hot = layers.Hashing(3, output_mode="one_hot")(LETTERS)
    np.testing.assert_array_equal(hot, np.eye(3)[[1, 0, 1, 1, 2]])
    counts = layers.Hashing(3, output_mode="count")([["A", "B", "C"]])
    np.testing.assert_array_equal(counts, [[1, 2, 0]])


FEATURES = np.array(["A", "B", "A", "B", "A"]), np.array([101, 101, 101, 102, 102])


def test_crosses_are_those_that_keras_documents():
    np.testing.assert_array_equal(layers.HashedCrossing(5)(FEATURES), [1, 4, 1, 1, 3])
    hot = layers.HashedCrossing(5, output_mode="one_hot")(FEATURES)
    np.testing.assert_array_equal(hot, np.eye(5)[[1, 4, 1, 1, 3]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.Hashing(0), "num_bins"),
        (lambda: layers.Hashing(3, salt=[1, 2, 3]), "salt: expected one or two numbers"),
        (lambda: layers.Hashing(3)(np.array([0.5])), "expected integers or strings, got an array of float64"),
        (lambda: layers.Hashing(3, dtype="float32"), "dtype: expected one of integers with output_mode='int'"),
        (lambda: layers.HashedCrossing(5, output_mode="count"), "output_mode: expected one of int, one_hot"),
        (lambda: layers.HashedCrossing(5)([FEATURES[0]]), "expected a list of two features or more"),
        (lambda: layers.HashedCrossing(5)((FEATURES[0], FEATURES[1][:4])), "expected features of one shape"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_sparse_results_are_refused():
    with pytest.raises(NotImplementedError, match="Hashing: sparse: expected None, got True"):
        layers.Hashing(3, sparse=True)


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("shape", [(4,), (4, 1), (3, 4)])
def test_shapes_are_those_of_results(mode, shape):
    layer = layers.Hashing(5, output_mode=mode)
    assert layer.compute_output_shape(shape) == np.shape(layer(np.ones(shape, "int32")))
    if mode in ("int", "one_hot") and shape != (3, 4):
        crossing = layers.HashedCrossing(5, output_mode=mode)
        found = crossing([np.ones(shape, "int32")] * 2)
        assert crossing.compute_output_shape([shape, shape]) == np.shape(found)


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("shape", [(4,), (4, 1), (3, 4)])
def test_tensors_have_the_bins_of_arrays(mode, shape):
    layer = layers.Hashing(5, output_mode=mode, mask_value=2)
    x = np.random.default_rng(0).integers(-(2**40), 2**40, (6, *shape))
    x[0] = 2
    inputs = layers.Input(shape, dtype="int64")
    outputs = layer(inputs)
    assert outputs.shape == layer.compute_output_shape((None, *shape))
    model = Model(inputs, outputs)
    expected = np.asarray(layer(x))
    assert outputs.dtype == expected.dtype.name == ("int64" if mode == "int" else "float32")
    for found in (model.predict(x, verbose=0), model(x), Model.from_config(model.get_config())(x)):
        np.testing.assert_array_equal(found, expected)


def test_crosses_of_tensors():
    pair = [layers.Input((1,), dtype="int32"), layers.Input((1,), dtype="int32")]
    for mode in ("int", "one_hot"):
        layer = layers.HashedCrossing(7, output_mode=mode)
        given = [np.arange(9, dtype="int32")[:, None], np.arange(9, dtype="int32")[:, None] * 3]
        np.testing.assert_array_equal(Model(pair, layer(pair)).predict(given, verbose=0), layer(given))


def test_floats_of_an_input_have_to_be_integers():
    """An Input is of floats where it says nothing else."""
    inputs = layers.Input((1,))
    model = Model(inputs, layers.Hashing(9)(inputs))
    x = np.arange(12)[:, None]
    np.testing.assert_array_equal(model.predict(x, verbose=0), layers.Hashing(9)(x))
    for wrong in (0.5, 2.0**24):
        with pytest.raises(ValueError, match="expected integers, got floats that are none"):
            model.predict(np.array([[wrong]]), verbose=0)
