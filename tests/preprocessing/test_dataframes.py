"""Tables of files: what is left out counts for nothing, what is missing or of mixed types is named."""

import numpy as np
import pytest

from pydtconv.preprocessing.image import ImageDataGenerator

Image = pytest.importorskip("PIL.Image")
#: the third file is not there, the sixth is no image
FILES = ["0.png", "1.png", "none.png", "3.png", "4.png", "text.txt"]
THERE = [0, 1, 3, 4]
NAN = float("nan")


@pytest.fixture
def flow(tmp_path):
    for i in THERE:
        Image.fromarray(np.full((2, 3, 3), 50 * i, np.uint8)).save(tmp_path / FILES[i])
    (tmp_path / "text.txt").write_text("no image")

    def read(columns, generator=None, **options):
        settings = {"directory": str(tmp_path), "target_size": (2, 3), "shuffle": False, "batch_size": 8}
        table = {"filename": FILES, **columns}
        return (generator or ImageDataGenerator()).flow_from_dataframe(table, **(settings | options))

    return read


@pytest.mark.parametrize("class_mode", ["categorical", "binary", "sparse"])
@pytest.mark.parametrize("gone", ["z", None, NAN, 7])
def test_labels_of_files_left_out_are_no_classes(flow, class_mode, gone, capsys):
    found = flow({"class": ["a", "b", gone, "b", "a", gone]}, class_mode=class_mode)
    assert found.class_indices == {"a": 0, "b": 1}
    assert (found.samples, found.filenames) == (4, [FILES[i] for i in THERE])
    assert "Found 4 validated image filenames belonging to 2 classes." in capsys.readouterr().out
    x, y = found[0]
    np.testing.assert_array_equal(x[:, 0, 0, 0], [0, 50, 150, 200])
    numbers = [0, 1, 1, 0]
    np.testing.assert_array_equal(y, np.eye(2)[numbers] if class_mode == "categorical" else numbers)


@pytest.mark.parametrize("class_mode", ["raw", "multi_output"])
@pytest.mark.parametrize("gone", ["z", None, [1, 2]])
def test_values_of_files_left_out_do_not_count(flow, class_mode, gone):
    columns = {"u": [0.0, 1.0, gone, 3.0, 4.0, gone], "v": [0, 1, gone, 3, 4, gone]}
    _, y, weights = flow(columns, y_col=["u", "v"], weight_col="v", class_mode=class_mode)[0]
    np.testing.assert_array_equal(np.stack(y, -1) if class_mode == "multi_output" else y, np.stack([THERE, THERE], -1))
    np.testing.assert_array_equal(weights, THERE)


def test_parts_are_of_the_files_that_are_there(flow):
    columns = {"class": ["a", "b", "z", "b", "a", "z"]}
    parts = {
        part: flow(columns, ImageDataGenerator(validation_split=0.5), subset=part, class_mode="binary").filenames
        for part in ("validation", "training")
    }
    assert parts == {"validation": ["0.png", "1.png"], "training": ["3.png", "4.png"]}


def test_only_chosen_classes(flow):
    lists = [["a", "c"], ["b"], "z", ["c"], "a", "z"]
    found = flow({"class": lists}, classes=["b", "a", "b"])
    assert found.class_indices == {"b": 0, "a": 1}
    assert found.filenames == ["0.png", "1.png", "4.png"]


@pytest.mark.parametrize("class_mode", ["categorical", "binary", "sparse", "raw", "multi_output"])
@pytest.mark.parametrize("odd", [None, NAN, 7, b"a"])
def test_what_is_missing_or_of_another_type_is_named(flow, class_mode, odd):
    options = {"y_col": ["class"]} if class_mode == "multi_output" else {}
    with pytest.raises(TypeError, match=r"column 'class': expected .*str.*, got .* in row 3"):
        flow({"class": ["a", "b", "b", odd, "a", "b"]}, class_mode=class_mode, **options)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"filename": ["0.png", None, 5]}, {"class_mode": None}, "column 'filename': expected str, got None in row 1"),
        ({"class": ["a"] * 6}, {"class_mode": "binary"}, r"expected two classes in 'class', got 1: \['a'\]"),
        ({"class": [["a", 1]] * 6}, {}, "column 'class': expected str, got 1"),
        ({"class": [1, "a"] * 3}, {"class_mode": "raw"}, "column 'class': expected str, got 1 in row 0"),
        ({"class": [1, None] * 3}, {"class_mode": "raw"}, "numbers or strings, got None in row 1"),
        ({"class": [[1], [1, 2]] * 3}, {"class_mode": "raw"}, "column 'class': expected values of one shape"),
        ({"class": [1] * 6}, {"class_mode": "multi_output"}, "y_col: expected a list of columns, got 'class'"),
        ({"u": [1] * 6, "v": ["a"] * 6}, {"class_mode": "raw", "y_col": ["u", "v"]}, "all numbers or all strings"),
        ({"class": ["a"] * 6, "w": [1, NAN] * 3}, {"weight_col": "w"}, "column 'w': expected finite numbers"),
        ({"class": ["a"] * 6, "w": ["1"] * 6}, {"weight_col": "w"}, "column 'w': expected finite numbers"),
    ],
)  # fmt: skip
def test_words(flow, columns, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        flow(columns, **options)


@pytest.mark.parametrize("class_mode", ["categorical", "binary", "sparse", "raw", "input", None])
def test_as_keras(flow, class_mode, tmp_path):
    pandas = pytest.importorskip("pandas")
    image = pytest.importorskip("keras.src.legacy.preprocessing.image")
    columns = {"class": ["a", "b", "a", "b", "a", "b"]}
    found = flow(columns, class_mode=class_mode)
    with pytest.warns(UserWarning, match="2 invalid image filename"):
        real = image.ImageDataGenerator().flow_from_dataframe(
            pandas.DataFrame({"filename": FILES, **columns}), str(tmp_path), target_size=(2, 3), shuffle=False,
            batch_size=8, class_mode=class_mode,
        )  # fmt: skip
    assert found.filenames == real.filenames
    for ours, theirs in zip(found[0], real[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
