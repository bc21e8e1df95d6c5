"""Calls of TextVectorization, and what Keras 3.15 on TensorFlow 2.21 gave for them (text_vectorization.json).

KERAS_BACKEND=tensorflow python -m tests.layers.text_vectorization_cases      records them anew
"""

import json
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).with_name("text_vectorization.json")
#: documents that `adapt` reads
ADAPTED = ["The cat sat, on the mat!", "the  DOG's dog\tran\u00a0far", "", "Émile CAT cat a_b-c", "[x] {y}: ~z^"]
CASES = [
    {}, {"output_sequence_length": 3}, {"output_sequence_length": 9}, {"max_tokens": 5}, {"ngrams": 2},
    {"ngrams": (2,)}, {"ngrams": (1, 3)}, {"split": "character"}, {"split": "character", "ngrams": 2},
    {"standardize": None}, {"standardize": "lower"}, {"standardize": "strip_punctuation"},
    {"split": None}, {"split": None, "ngrams": 2}, {"split": None, "output_sequence_length": 2},
    {"max_tokens": 6, "pad_to_max_tokens": True},
    *(
        {"output_mode": mode, **more}
        for mode in ("multi_hot", "count", "tf_idf")
        for more in ({}, {"ngrams": 2, "max_tokens": 9}, {"max_tokens": 30, "pad_to_max_tokens": True}, {"split": None})
    ),
    {"vocabulary": ["cat", "dog", "far"]}, {"vocabulary": ["", "[UNK]", "cat", "dog"], "output_sequence_length": 4},
    {"vocabulary": ["[UNK]", "cat", "dog"], "output_mode": "count"},
    {"vocabulary": ["cat", "dog"], "output_mode": "tf_idf", "idf_weights": [0.25, 0.75]},
]  # fmt: skip
#: (n,), (n, 1), (), (n, k, 1)
INPUTS = [
    ["the new cat ran", "", "Dog; dog the mat"],
    [["the new cat ran"], [""], ["mat"]],
    "the new cat, ran the cat",
    [[["the cat"], ["dog"]], [["a_b-c"], ["ran the the"]]],
]


def outcomes(keras, options):
    """The vocabulary, and the values for each of INPUTS; of a ragged result, or of none, None."""
    layer = keras.layers.TextVectorization(**options)
    if "vocabulary" not in options:
        layer.adapt(ADAPTED)
    found = []
    for given in INPUTS:
        try:
            y = layer(np.array(given, object) if isinstance(given, list) else given)
            found.append(None if hasattr(y, "to_tensor") and None in y.shape else np.asarray(y).tolist())
        except Exception:  # of a text without axes, which has no runs of several
            found.append(None)
    return {"vocabulary": list(map(str, layer.get_vocabulary())), "values": found}


if __name__ == "__main__":
    import keras

    rows = (json.dumps(outcomes(keras, options)) for options in CASES)
    RECORDED.write_text("[\n" + ",\n".join(rows) + "\n]\n")
