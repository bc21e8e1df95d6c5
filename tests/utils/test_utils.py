"""pydtconv.utils apart from files: seeds, names, labels, data sets, progress, pictures."""

import random

import numpy as np
import pytest

from pydtconv import Variable, config, function
from pydtconv.naming import auto_name
from pydtconv.support.random import next_seed
from pydtconv.utils import (
    Progbar,
    PyDataset,
    clear_session,
    normalize,
    plot_learning_curve,
    set_random_seed,
    split_dataset,
    to_categorical,
)


def draw():
    return random.random(), np.random.rand(), next_seed(), next_seed()  # noqa: NPY002


def test_equal_seeds_draw_equal_numbers():
    set_random_seed(7)
    first = draw()
    assert first[2] != first[3]
    set_random_seed(7)
    assert draw() == first
    set_random_seed(8)
    assert not set(draw()) & set(first)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True, None])
def test_a_wrong_seed_is_refused(seed):
    with pytest.raises(ValueError, match="seed to be an integer"):
        set_random_seed(seed)


def test_names_count_and_start_again():
    assert [auto_name("dense"), auto_name("dense"), auto_name("conv2d")] == ["dense", "dense_1", "conv2d"]
    clear_session()
    assert auto_name("dense") == "dense"


def test_to_categorical():
    codes = to_categorical([[1], [3]])
    assert codes.dtype == "float32"
    np.testing.assert_array_equal(codes, [[0, 1, 0, 0], [0, 0, 0, 1]])
    assert to_categorical(np.zeros((2, 3)), num_classes=5).shape == (2, 3, 5)
    config.set_floatx("float64")
    assert to_categorical([0]).dtype == "float64"
    with pytest.raises(ValueError, match="labels from 0 to 2, got 0 to 3"):
        to_categorical([0, 3], num_classes=3)
    with pytest.raises(ValueError, match="got -1 to 0"):
        to_categorical([0, -1])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_normalize(order):
    x = np.array([[3.0, -4.0], [0.0, 0.0]])
    expected = x / np.array([[(3**order + 4**order) ** (1 / order)], [1]])
    np.testing.assert_allclose(normalize(x, axis=-1, order=order), expected)
    with pytest.raises(ValueError, match="order"):
        normalize(x, order=0)
    traced = function(lambda x: normalize(x, axis=-1, order=order))(x.astype("float32"))
    np.testing.assert_allclose(traced, expected, rtol=1e-6)
    np.testing.assert_allclose(normalize(Variable(x), order=order), expected, rtol=1e-6)


class Squares(PyDataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return np.full(2, index), np.full(2, index**2)


def test_a_py_dataset_gives_its_batches_in_order():
    assert [int(y[0]) for _, y in Squares()] == [0, 1, 4]
    assert Squares(workers=2).num_batches == 3
    with pytest.raises(TypeError, match="PyDataset: expected a method __len__"):
        PyDataset().num_batches  # noqa: B018
    with pytest.raises(NotImplementedError, match="PyDataset: expected a method __getitem__"):
        next(iter(PyDataset()))


def test_split_dataset_keeps_structure_and_pairs():
    x, y = np.arange(10), np.arange(10) * 2
    left, right = split_dataset((x, y), left_size=0.7, shuffle=True, seed=3)
    assert len(left[0]) == 7
    assert len(right[0]) == 3
    np.testing.assert_array_equal(left[1], left[0] * 2)
    assert sorted([*left[0], *right[0]]) == list(range(10))
    parts = split_dataset({"a": list("abcd")}, right_size=1)
    assert parts == ({"a": ["a", "b", "c"]}, {"a": ["d"]})
    assert split_dataset(list(range(10)), left_size=3, right_size=2) == ([0, 1, 2], [8, 9])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "left_size or right_size, got neither"),
        ({"left_size": 1.5}, ValueError, "left_size as a fraction"),
        ({"left_size": 6, "right_size": 6}, ValueError, "make 6 and 6"),
        ({"left_size": 10}, ValueError, "count below 10"),
    ],
)
def test_split_dataset_refuses_sizes_that_do_not_fit(arguments, error, message):
    with pytest.raises(error, match=message):
        split_dataset(np.arange(10), **arguments)


def test_split_dataset_refuses_other_data():
    with pytest.raises(TypeError, match="got int"):
        split_dataset(3, left_size=0.5)


def test_progress_without_a_terminal_is_one_line_with_means(capsys):
    bar = Progbar(4, stateful_metrics=["accuracy"])
    for step in range(1, 5):
        bar.update(step, [("loss", step), ("accuracy", step / 4)])
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert text.startswith("4/4 - 0s - ")
    assert "/step" in text
    assert "loss: 2.5000" in text
    assert "accuracy: 1.0000" in text


def test_progress_without_a_terminal_has_lines_as_often_as_asked(capsys):
    bar = Progbar(3, interval=0)
    for step in range(1, 4):
        bar.update(step, [("loss", step)])
    assert [line.split(" - ")[0] for line in capsys.readouterr().out.splitlines()] == ["1/3", "2/3", "3/3"]


def test_progress_can_be_silent(capsys):
    Progbar(1, verbose=0).update(1, [("loss", 1)])
    assert capsys.readouterr().out == ""


def test_a_learning_curve_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    history = {"loss": [2.0, 1.0], "val_loss": [2.5, 1.5], "accuracy": [0.1, 0.9], "learning_rate": [1, 1]}
    path = plot_learning_curve(history, tmp_path / "new" / "curve.png", title="digits")
    assert (tmp_path / "new" / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert path == str(tmp_path / "new" / "curve.png")
    with pytest.raises(ValueError, match="history of one epoch or more"):
        plot_learning_curve({}, path)


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pydtconv\[plot\]"):
        plot_learning_curve({"loss": [1.0]}, tmp_path / "curve.png")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"stateful_metrics": []}, "4.0000"),
        ({"stateful_metrics": ["value"]}, "6.0000"),
        ({"stateless_metrics": []}, "6.0000"),
        ({"stateless_metrics": ["value"]}, "4.0000"),
    ],
)
def test_which_values_are_averaged_and_lists_of_them(given, shown, capsys):
    bar = Progbar(2, **given)
    bar.update(1, [("value", [1, 3])])
    bar.update(2, [("value", np.float32(6))])
    assert f"value: {shown}" in capsys.readouterr().out
    with pytest.raises(ValueError, match="stateful_metrics or stateless_metrics, got both"):
        Progbar(2, stateful_metrics=[], stateless_metrics=[])
