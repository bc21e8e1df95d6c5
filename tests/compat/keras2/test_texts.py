"""`keras.preprocessing.text`: every name beside the Keras that is installed."""

import importlib
import inspect
import json
import pickle

import numpy as np
import pytest

from pydtconv.compat.keras2 import texts
from tests.real_keras import import_keras

TEXTS = ["The cat, the dog; and THE bird.", "A cat\tsat-down", "", "the the mat", ["Own", "cat"]]
PLAIN = TEXTS[:-1]
KINDS = {
    "plain": {}, "few": {"num_words": 4}, "unknown": {"oov_token": "<oov>", "num_words": 4},
    "case": {"lower": False}, "split": {"split": "-", "filters": " ."}, "characters": {"char_level": True},
    "analyzer": {"analyzer": lambda text: text.split("a")}, "frequent": {"oov_token": "the"},
}  # fmt: skip
NEW = ["a bird and the fish", "nothing known", ""]
NUMBERS = [[1, 2, 2, 7, 99], [], [3]]
FUNCTIONS = {
    "text_to_word_sequence": [((PLAIN[0],), {}), ((PLAIN[1],), {"split": "a", "lower": False, "filters": "-\t"})],
    "one_hot": [((PLAIN[0], 9), {}), ((PLAIN[0], 9, "e", False, " "), {})],
    "hashing_trick": [
        ((PLAIN[0], 9, "md5"), {}), ((PLAIN[0], 9, len), {"analyzer": list}), ((PLAIN[1], 50), {"lower": False}),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def theirs():
    import_keras()
    return importlib.import_module("keras.src.legacy.preprocessing.text")


def results(module, kind):
    """What each method of a Tokenizer gives, by name."""
    made = module.Tokenizer(**KINDS[kind])
    made.fit_on_texts(PLAIN if kind in ("analyzer", "characters") else TEXTS)
    tables = {name: dict(getattr(made, name)) for name in texts.TABLES}
    found = {
        "fit_on_texts": (tables, list(made.word_index), made.document_count),
        "texts_to_sequences": made.texts_to_sequences(NEW),
        "texts_to_sequences_generator": list(made.texts_to_sequences_generator(NEW)),
        "sequences_to_texts": made.sequences_to_texts(NUMBERS),
        "sequences_to_texts_generator": list(made.sequences_to_texts_generator(NUMBERS)),
        "texts_to_matrix": [made.texts_to_matrix(NEW, mode) for mode in texts.MODES],
        "sequences_to_matrix": made.sequences_to_matrix(NUMBERS),
    }
    made.fit_on_sequences(NUMBERS)
    config = {name: json.loads(v) if name in texts.TABLES else v for name, v in made.get_config().items()}
    again = module.tokenizer_from_json(made.to_json(indent=1))
    return found | {
        "fit_on_sequences": (dict(made.index_docs), made.sequences_to_matrix(NUMBERS, "tfidf")),
        "get_config": config,
        "to_json": (again.texts_to_sequences(NEW), again.sequences_to_matrix(NUMBERS, "tfidf")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_of_a_tokenizer_is_keras(theirs, kind):
    found, expected = results(texts, kind), results(theirs, kind)
    public = {name for name, _ in inspect.getmembers(theirs.Tokenizer, callable) if not name.startswith("_")}
    assert found.keys() == public
    for name in public:
        np.testing.assert_equal(found[name], expected[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_keras(theirs, name):
    for args, kwargs in FUNCTIONS[name]:
        assert getattr(texts, name)(*args, **kwargs) == getattr(theirs, name)(*args, **kwargs), (args, kwargs)


@pytest.mark.parametrize("root", ["keras", "tensorflow.keras", "keras_preprocessing", "tensorflow.python.keras"])
def test_scripts_find_every_name(tf, root):
    root = "keras_preprocessing" if root == "keras_preprocessing" else f"{root}.preprocessing"
    module = importlib.import_module(f"{root}.text")
    assert set(dir(module)) == {*FUNCTIONS, "Tokenizer", "tokenizer_from_json"}
    assert "text" in dir(importlib.import_module(root))
    with pytest.raises(ImportError, match="Tokeniser"):
        importlib.import_module(f"{root}.text.Tokeniser")


def test_old_arguments_and_pickles(tf):
    from keras.preprocessing.text import Tokenizer, one_hot, text_to_word_sequence

    with pytest.warns(FutureWarning, match="write input_text"):
        assert one_hot(text="a b", n=5) == one_hot("a b", 5)
    assert text_to_word_sequence(text="A b") == ["a", "b"]
    with pytest.warns(FutureWarning, match="nb_words"):
        made = Tokenizer(nb_words=3)
    made.fit_on_texts(PLAIN)
    assert pickle.loads(pickle.dumps(made)).texts_to_sequences(PLAIN) == made.texts_to_sequences(PLAIN)
    assert made.num_words == 3


def test_what_is_refused():
    made = texts.Tokenizer()
    for call, expected in (
        (lambda: made.sequences_to_matrix([[1]]), "num_words"),
        (lambda: texts.Tokenizer(5).sequences_to_matrix([[1]], "tfidf"), "fit_on_texts"),
        (lambda: texts.Tokenizer(5).sequences_to_matrix([[1]], "idf"), "binary, count, freq, tfidf"),
        (lambda: texts.hashing_trick("a", 1), "2 or more"),
        (lambda: texts.hashing_trick("a", 5, "sha"), "md5"),
    ):
        with pytest.raises(ValueError, match=expected):
            call()
