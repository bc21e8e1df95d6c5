"""Tables and texts as Keras lays them: what is read is what Keras reads of the same small files."""

import json
import pickle

import numpy as np
import pytest

from pydtconv.datasets import boston_housing, california_housing, imdb, reuters
from pydtconv.files.reading import BadFileError
from tests.datasets.test_files import places  # noqa: F401  (a fixture)
from tests.real_keras import import_keras

RNG = np.random.default_rng(0)


def lists(count):
    found = np.empty(count, object)
    found[:] = [RNG.integers(1, 300, RNG.integers(2, 9)).tolist() for _ in range(count)]
    return found


FILES = {
    "boston_housing": lambda: {"x": RNG.random((31, 13)), "y": RNG.random(31)},
    "california_housing": lambda: {"x": RNG.random((700, 8), "float32"), "y": RNG.random(700, "float32")},
    "imdb": lambda: {"x_train": lists(20), "y_train": np.arange(20) % 2, "x_test": lists(9), "y_test": np.arange(9)},
    "reuters": lambda: {"x": lists(23), "y": np.arange(23)},
}
CALLS = {
    boston_housing: [{}, {"test_split": 0.5, "seed": 3}],
    california_housing: [{}, {"version": "small", "test_split": 0.0}],
    imdb: [
        {},
        {"num_words": 100, "skip_top": 5},
        {"maxlen": 7, "oov_char": None, "num_words": 99},
        {"start_char": None},
    ],
    reuters: [{}, {"num_words": 50, "index_from": 5}, {"maxlen": 6, "test_split": 0.4}],
}


@pytest.mark.parametrize("module", CALLS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_each_call_gives_what_keras_gives(places, monkeypatch, module):  # noqa: F811
    keras = import_keras()
    name = module.__name__.rpartition(".")[2]
    path = places[1].parent / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **FILES[name]())
    theirs = getattr(keras.datasets, name).load_data
    monkeypatch.setitem(theirs.__globals__, "get_file", lambda *args, **kwargs: str(path))
    for arguments in CALLS[module]:
        ours = module.load_data(path=str(path), **arguments)
        for part, expected in zip(ours, theirs(path=str(path), **arguments), strict=True):
            for a, b in zip(part, expected, strict=True):
                assert a.dtype == b.dtype
                assert a.tolist() == b.tolist()


def test_files_are_found_in_the_cache_and_missing_ones_are_named(places):  # noqa: F811
    with pytest.raises(FileNotFoundError, match=r"(?s)IMDB is not on this machine.*put imdb\.npz"):
        imdb.load_data()
    places[1].mkdir(parents=True)
    (places[1] / "reuters_word_index.json").write_text(json.dumps({"the": 1}))
    assert reuters.get_word_index() == {"the": 1}
    assert (len(reuters.get_label_names()), reuters.get_label_names()[3]) == (46, "earn")
    np.savez(places[1] / "boston_housing.npz", x=np.zeros((3, 5)), y=np.zeros(3))
    with pytest.raises(BadFileError, match=r"expected x \(n, 13\)"):
        boston_housing.load_data()
    for call, told in (
        (lambda: california_housing.load_data(version="huge"), "expected 'small' or 'large'"),
        (lambda: reuters.get_word_index("../x.json"), "not on this machine"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=told):
            call()


class Runs:
    def __reduce__(self):
        return print, ("this must not run",)


@pytest.mark.parametrize("wrong", [[Runs()], [{"a": 1}], [[1.5]], ["text"]], ids=["code", "dict", "floats", "text"])
def test_pickles_of_others_are_refused(places, capsys, wrong):  # noqa: F811
    places[1].mkdir(parents=True)
    x = np.empty(1, object)
    x[:] = wrong
    np.savez(places[1] / "reuters.npz", x=x, y=np.zeros(1, "int64"))
    with pytest.raises((BadFileError, pickle.UnpicklingError)):
        reuters.load_data()
    assert not capsys.readouterr().out
