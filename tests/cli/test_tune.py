"""pydtconv tune: the passes of a network, timed and kept."""

import json

import pytest

from pydtconv.applications import build
from pydtconv.cli import main
from pydtconv.conv import timings
from pydtconv.graph import passes_of

WORDS = ["tune", "--model", "resnet20", "--image-size", "8", "--batch-size", "2"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path))
    timings.forget()
    yield tmp_path / "convolutions.json"
    timings.forget()


def test_passes_are_those_of_the_step():
    model = build("resnet20", input_shape=(8, 8, 3), classes=10)
    plan = model.plan(2)
    tasks = passes_of(plan.steps, plan.algorithms)
    directions = [direction for _, direction in tasks]
    assert directions.count("forward") == directions.count("backward_weights") == 19
    assert directions.count("backward_data") == 18  # none for the images


def test_results_are_kept_for_the_next_time(cache, capsys):
    assert main(WORDS) == 0
    text = capsys.readouterr().out
    assert "convolutions of a step" in text
    (entries,) = json.loads(cache.read_text())["builds"].values()
    assert len(entries) == text.count("2x8x8") + text.count("2x4x4") + text.count("2x2x2")
    written = cache.stat().st_mtime_ns
    assert main(WORDS) == 0
    assert cache.stat().st_mtime_ns == written
    assert main([*WORDS, "--again"]) == 0
    assert cache.stat().st_mtime_ns > written


def test_what_is_wrong_is_one_line(tmp_path, monkeypatch, capsys):
    for words, message in (
        (["--seconds", "0"], "--seconds: expected a number above 0"),
        (["--workspace-limit", "-1"], "--workspace-limit: expected MiB of 0 or more"),
        (["--threads", "0"], "set_num_threads: expected an integer of 1 or more"),
    ):
        assert main([*WORDS, *words]) == 2
        text = capsys.readouterr().err
        assert message in text
        assert text.count("\n") == 1
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="is ignored"):
        assert main([*WORDS, "--seconds", "1"]) == 2


def test_what_time_did_not_suffice_for_is_told(capsys):
    assert main([*WORDS, "--seconds", "1e-9"]) == 0
    assert "time was over before" in capsys.readouterr().out
