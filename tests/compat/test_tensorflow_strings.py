"""`tf.strings`."""

import numpy as np


def test_strings(tf):
    names = tf.data.Dataset.from_tensor_slices(["a/cat/1.png", "a/dog/2.png"])
    assert [tf.strings.split(name, "/")[-2] for name in names] == ["cat", "dog"]
    assert tf.strings.unicode_split("xyz", input_encoding="UTF-8").tolist() == ["x", "y", "z"]
    assert tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=-1).tolist() == ["ab", "cd"]
    assert tf.strings.regex_replace(np.array(["a1", "b22"]), "[0-9]+", "").tolist() == ["a", "b"]
    assert (tf.strings.length("abc"), tf.strings.lower("AB"), tf.strings.substr("hello", 1, 3)) == (3, "ab", "ell")
    assert (float(tf.strings.to_number("3.5")), tf.strings.as_string(3), tf.strings.join(["a", "b"], "-")) == (
        3.5,
        "3",
        "a-b",
    )
