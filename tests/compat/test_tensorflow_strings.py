"""`tf.strings`."""

import numpy as np
import pytest


def test_strings(tf):
    names = tf.data.Dataset.from_tensor_slices(["a/cat/1.png", "a/dog/2.png"])
    assert [tf.strings.split(name, "/")[-2].numpy() for name in names] == [b"cat", b"dog"]
    assert tf.strings.unicode_split("xyz", input_encoding="UTF-8").numpy().tolist() == [b"x", b"y", b"z"]
    assert tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=-1).numpy().tolist() == [b"ab", b"cd"]
    assert tf.strings.regex_replace(np.array(["a1", "b22"]), "[0-9]+", "").numpy().tolist() == [b"a", b"b"]
    with pytest.raises(NotImplementedError, match=r"shape \(2,\), whose result is a RaggedTensor"):
        tf.strings.split(["a b", "c"])
    numbers = tf.strings.to_number(tf.strings.split(["1,2", "3,4", "5,6"], ","), tf.float32).to_tensor()
    assert numbers.numpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert tf.strings.split([["a b"], ["c d"]]).numpy().tolist() == [[[b"a", b"b"]], [[b"c", b"d"]]]
    assert (tf.strings.length("abc"), tf.strings.lower("AB"), tf.strings.substr("hello", 1, 3)) == (3, "ab", "ell")
    assert (float(tf.strings.to_number("3.5")), tf.strings.as_string(3), tf.strings.join(["a", "b"], "-")) == (
        3.5,
        "3",
        "a-b",
    )
