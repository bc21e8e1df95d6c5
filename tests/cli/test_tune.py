"""pydtconv tune: the passes of a network, timed and kept."""

import json

import pytest

from pydtconv import config
from pydtconv.applications import build
from pydtconv.cli import main
from pydtconv.conv import timings, tuning
from pydtconv.graph import disk_speed, passes_of

WORDS = ["tune", "--model", "mnistconvnet", "--image-size", "12", "--batch-size", "2"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path))
    monkeypatch.setattr(tuning, "ROUNDS", 1)  # how well is measured is no question here
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


@pytest.mark.slow
def test_results_are_kept_for_the_next_time(cache, capsys):
    assert main(WORDS) == 0
    text = capsys.readouterr().out
    assert "convolutions of a step" in text
    (entries,) = json.loads(cache.read_text())["builds"].values()
    assert len(entries) == text.count("2x12x12") + text.count("2x5x5") == 5
    written = cache.stat().st_mtime_ns
    assert main(WORDS) == 0
    assert cache.stat().st_mtime_ns == written
    assert main([*WORDS, "--again"]) == 0
    assert cache.stat().st_mtime_ns > written


def test_the_disk_is_timed_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(disk_speed, "BYTES", 16 << 20)
    assert main([*WORDS, "--offload", str(tmp_path)]) == 0
    assert f"disk of {tmp_path}: " in capsys.readouterr().out
    (kept,) = tmp_path.glob("disks.json")
    assert sum(name.endswith(" write") for name in json.loads(kept.read_text())["figures"]) == 1
    assert main([*WORDS, "--offload", str(tmp_path / "none")]) == 2
    assert "offload: expected a folder that can be written to, got" in capsys.readouterr().err
    monkeypatch.setattr(disk_speed, "measure", None)  # a plan reckons with what was found
    assert disk_speed.disk_of(str(tmp_path)).write > 0


def test_what_is_wrong_is_one_line(tmp_path, monkeypatch, capsys):
    for words, message in (
        (["--seconds", "0"], "--seconds: expected a number above 0"),
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


def test_all_bases_are_timed_where_asked(cache, monkeypatch, capsys):
    assert main([*WORDS, "--all-bases"]) == 0
    (entries,) = json.loads(cache.read_text())["builds"].values()
    timed = [set(seconds) for key, seconds in entries.items() if "12" in key]
    assert timed
    assert all({f"fft {n}x{n}" for n in (12, 14, 15, 16)} <= names for names in timed if "fft 12x12" in names)
    assert any("fft 16x16" in names for names in timed)
    monkeypatch.setattr(config, "set_device", lambda name: None)
    monkeypatch.setattr(config, "device", lambda: "host")
    assert main(["tune", "--model", "mnistconvnet", "--device", "host", "--all-bases"]) == 2
    assert "--all-bases: expected --device cpu, got host" in capsys.readouterr().err
