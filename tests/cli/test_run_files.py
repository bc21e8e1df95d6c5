"""Files that repeat a run: what is written is read back as it was, and what cannot be is refused."""

import pytest

from pydtconv.cli import build_parser, main, run_files

TRAIN = ["train", "--model", "mlp"]
TEXTS = ["-x", "--", "a=b", "a b", "", 'a"b\\c', "\x00\x08\t\n\x0c\r\x1b\x7f\x80", "é", "犬", "\U0001f436", "\ufeff"]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_texts_are_read_as_they_were_written(text, tmp_path):
    path = str(tmp_path / "run.toml")
    run_files.write(path, "train", {"output": text}, {"names": [text, "dog"]})
    assert run_files.read(path) == {"output": text, "result": {"names": [text, "dog"]}}


def test_the_name_of_a_file_may_have_a_new_line(tmp_path):
    path = str(tmp_path / "a\nb\x7f.toml")
    run_files.write(path, "train", {"seed": 2}, {})
    assert run_files.read(path) == {"seed": 2, "result": {}}


@pytest.mark.parametrize(
    "options",
    [
        *(["--output=" + text] for text in TEXTS if text != "--"),
        ["--learning-rate", "1e-9", "--weight-decay", "0", "--seed", "7", "--early-stopping", "2"],
        ["--metrics", "accuracy", "crossentropy", "--augment", "--no-sync-batchnorm"],
        ["--ema", "--tune"],
        ["--ema", "0.5", "--tune", "3", "--mesh", "batch=2,height=2"],
    ],
    ids=ascii,
)
def test_options_are_given_as_they_were_written(options, tmp_path):
    path = str(tmp_path / "run.toml")
    first = build_parser().parse_args([*TRAIN, *options])
    run_files.write(path, "train", first.options, {})
    second = build_parser().parse_args(["train", "--config", path])
    assert second.options == first.options
    assert len(first.options) > 1


RESULT = {"model": "mlp", "weights": "a.h5", "classes": 2, "names": ["a", "b"], "shape": [4, 4, 3]}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("model", 3, "a text"),
        ("dtype", ["float32"], "a text"),
        ("weights", 3, "a text"),
        ("classes", "2", "an integer"),
        ("classes", True, "an integer"),
        ("names", "ab", "texts"),
        ("names", ["a", 2], "texts"),
        ("shape", 4, "integers"),
        ("shape", [4.0, 4.0, 3], "integers"),
    ],
    ids=ascii,
)
def test_a_result_of_other_types_is_refused(key, value, expected, tmp_path, capsys):
    path = str(tmp_path / "run.toml")
    found = {**RESULT, key: value}
    run_files.write(path, "train", {name: found.pop(name) for name in ("model", "dtype") if name in found}, found)
    assert main(["predict", str(tmp_path), "--trained", path]) == 2
    told = f"pydtconv predict: --trained: {path}: {key}: expected {expected}, got {value!r}\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("text", ["", "result = 3", "result = [1]", "[result]\nclasses = 2"])
def test_a_file_without_a_result_is_refused(text, tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text(text)
    assert main(["predict", str(tmp_path), "--trained", str(path)]) == 2
    assert f"{path}: expected a table [result]" in capsys.readouterr().err
