"""Texts from folders: labels, lengths, parts, training on strings."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.utils import text_dataset_from_directory

FOUND = {"neg": ["bad film", "bad"], "pos": ["good film", "good, so good", "é good"]}


@pytest.fixture
def folder(tmp_path):
    for kind, texts in FOUND.items():
        (tmp_path / kind).mkdir()
        for i, text in enumerate(texts):
            (tmp_path / kind / f"{i}.txt").write_text(text, "utf-8")
        (tmp_path / kind / "notes.md").write_text("no sample")
    return tmp_path


def test_batches_in_order(folder, capsys):
    data = text_dataset_from_directory(folder, shuffle=False, batch_size=2)
    assert capsys.readouterr().out == "Found 5 files belonging to 2 classes.\n"
    assert data.class_names == ["neg", "pos"]
    batches = list(data)
    expected = [text.encode() for texts in FOUND.values() for text in texts]
    assert [text for x, _ in batches for text in x] == expected
    assert np.concatenate([y for _, y in batches]).tolist() == [0, 0, 1, 1, 1]
    cut = text_dataset_from_directory(folder, shuffle=False, max_length=3, label_mode=None, verbose=False)
    assert list(next(iter(cut))) == [text[:3] for text in expected]
    assert text_dataset_from_directory(folder, batch_size=None, shuffle=False, verbose=False)[4][0] == expected[4]
    binary = text_dataset_from_directory(folder, label_mode="binary", verbose=False)
    assert binary[0][1].shape == (5, 1)


def test_parts_are_disjoint_and_orders_are_drawn_anew(folder):
    parts = text_dataset_from_directory(folder, validation_split=0.4, subset="both", seed=3, verbose=False)
    assert sorted(text for part in parts for x, _ in part for text in x) == sorted(
        text.encode() for texts in FOUND.values() for text in texts
    )
    orders = {tuple(text for x, _ in parts[0] for text in x) for _ in range(20)}
    assert len(orders) > 1
    with pytest.raises(ValueError, match="max_length: expected None or an integer of 1 or more, got 0"):
        text_dataset_from_directory(folder, max_length=0)
    with pytest.raises(ValueError, match=r"expected one folder for each class with \.txt files in it, found none"):
        text_dataset_from_directory(folder / "pos")


def test_a_model_trains_on_the_texts(folder):
    data = text_dataset_from_directory(folder, batch_size=2, seed=1, verbose=False)
    words = layers.TextVectorization(output_mode="multi_hot")
    words.adapt(x for x, _ in data)
    assert words.get_vocabulary(include_special_tokens=False) == ["good", "film", "bad", "é", "so"]
    inputs = keras.Input((1,), dtype="string")
    model = keras.Model(inputs, layers.Dense(1, "sigmoid")(words(inputs)))
    model.compile(keras.optimizers.Adam(0.3), "binary_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=10, verbose=0)
    assert model.evaluate(data, verbose=0, return_dict=True)["accuracy"] == 1
