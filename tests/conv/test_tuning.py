"""Tuning: what is timed, kept, read again, and taken."""

import json

import pytest

from pydtconv import config, microkernels
from pydtconv.conv import ConvProblem, algorithms, choose, timings, tuning, workspace_bytes
from pydtconv.conv.selection import ranking

P = ConvProblem(1, 6, 6, 4, 8, (3, 3), padding="same")
OTHER = ConvProblem(1, 6, 6, 4, 8, (1, 1))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A folder of its own for each test, and nothing kept in the process."""
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "cache"))
    timings.forget()
    yield tmp_path / "cache" / "convolutions.json"
    timings.forget()


def keep(p, direction, **seconds):
    timings.add({timings.key(p, direction): seconds})


def test_where_the_file_lies(monkeypatch, tmp_path):
    assert timings.path() == tmp_path / "cache" / "convolutions.json"
    monkeypatch.delenv("PYDTCONV_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert timings.path() == tmp_path / "xdg" / "pydtconv" / "convolutions.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert timings.path() == tmp_path / ".cache" / "pydtconv" / "convolutions.json"


def test_the_fastest_measured_is_taken_and_the_others_keep_their_order(cache):
    ranked = list(ranking(P, "forward"))
    assert choose(P, "forward").why == "ranking by cost model"
    keep(P, "forward", im2col=1e-3, convgemm=2e-3)
    timings.forget()  # from the file
    assert choose(P, "forward").algorithm == "im2col"
    assert choose(P, "forward").why == "fastest measured"
    assert algorithms(P, "forward") == ["im2col", "convgemm", *(x for x in ranked if x not in ("im2col", "convgemm"))]
    assert choose(P, "forward", "convgemm").algorithm == "convgemm"
    assert choose(P, "forward", variant="CGT").algorithm == "convgemm"
    assert choose(P, "backward_data").why == "ranking by cost model"
    assert choose(OTHER, "forward").why == "ranking by cost model"


def test_strict_precision_passes_over_what_it_leaves_out():
    keep(P, "forward", winograd=1e-6, im2col=1e-3)
    assert choose(P, "forward").algorithm == "winograd"
    config.set_conv_precision("strict")
    try:
        assert choose(P, "forward").algorithm == "im2col"
    finally:
        config.set_conv_precision("fast")


def test_an_entry_belongs_to_threads_kernel_dtype_and_every_size():
    key = timings.key(P, "forward")
    others = [
        timings.key(P, "backward_data"),
        timings.key(ConvProblem(2, 6, 6, 4, 8, (3, 3), padding="same"), "forward"),
        timings.key(ConvProblem(1, 6, 6, 4, 8, (3, 3), padding="valid"), "forward"),
        timings.key(ConvProblem(1, 6, 6, 4, 8, (3, 3), padding="same", dilation=2), "forward"),
        timings.key(ConvProblem(1, 6, 6, 4, 8, (3, 3), padding="same", groups=2), "forward"),
        timings.key(ConvProblem(1, 6, 6, 4, 8, (3, 3), (2, 2), padding="same"), "forward"),
        timings.key(ConvProblem(1, 6, 6, 4, 8, (3, 3), padding="same", dtype="float64"), "forward"),
    ]
    config.set_num_threads(config.num_threads() + 1)
    others.append(timings.key(P, "forward"))
    config.set_num_threads(config.num_threads() - 1)
    microkernels.select("portable")
    try:
        others.append(timings.key(P, "forward"))
    finally:
        microkernels.select(None)
    assert len({key, *others}) == 1 + len(others)
    assert timings.key(P, "forward") == key


def test_entries_of_other_builds_are_kept_but_for_the_oldest(cache, monkeypatch):
    for name in "abcde":
        monkeypatch.setattr(timings, "build", lambda name=name: name)
        timings.forget()
        assert choose(P, "forward").why == "ranking by cost model"
        keep(P, "forward", im2col=1e-3)
    assert list(json.loads(cache.read_text())["builds"]) == ["b", "c", "d", "e"]
    keep(OTHER, "forward", im2col=1e-3)
    assert len(json.loads(cache.read_text())["builds"]["e"]) == 2


@pytest.mark.parametrize(
    "contents",
    [
        "{",
        "[]",
        "{}",
        '{"format": "other", "version": 1, "builds": {}}',
        '{"format": "pydtconv convolution timings", "version": 99, "builds": {}}',
        '{"format": "pydtconv convolution timings", "version": 1, "builds": {"a": {"b": {"im2col": "fast"}}}}',
        '{"format": "pydtconv convolution timings", "version": 1, "builds": {"a": [1]}}',
    ],
    ids=["torn", "list", "empty", "format", "version", "value", "entries"],
)
def test_a_file_that_cannot_be_read_is_ignored_with_a_warning_and_replaced(contents, cache):
    cache.parent.mkdir()
    cache.write_text(contents)
    with pytest.warns(RuntimeWarning, match=r"convolutions.json is ignored, run `pydtconv tune` again"):
        assert choose(P, "forward").why == "ranking by cost model"
    choose(P, "backward_data")  # one warning is enough
    with pytest.warns(RuntimeWarning, match="is ignored"):
        keep(P, "forward", im2col=1e-3)
    timings.forget()
    assert choose(P, "forward").algorithm == "im2col"


def test_all_algorithms_of_a_task_are_timed_and_kept_once():
    tasks, seen = [(P, "forward"), (OTHER, "backward_weights"), (P, "forward")], []
    found = tuning.tune(tasks, 30.0, progress=lambda done, of, task: seen.append((done, of, task)))
    assert seen == [(0, 2, tasks[0]), (1, 2, tasks[1])]
    for p, direction in tasks:
        assert set(found.seconds[p, direction]) == set(ranking(p, direction))
        best = min(found.seconds[p, direction], key=found.seconds[p, direction].get)
        assert choose(p, direction).algorithm == best
    timings.forget()
    seen.clear()
    assert tuning.tune(tasks, 30.0, progress=lambda *done: seen.append(done)).seconds == found.seconds
    assert not seen
    tuning.tune(tasks, 30.0, again=True, progress=lambda *done: seen.append(done))
    assert len(seen) == 2


def test_a_workspace_limit_leaves_algorithms_out():
    limit = min(workspace_bytes(P, "forward", name) for name in ranking(P, "forward"))
    found = tuning.tune([(P, "forward")], 30.0, workspace_limit=limit)
    names = [name for name in ranking(P, "forward") if workspace_bytes(P, "forward", name) <= limit]
    assert set(found.seconds[P, "forward"]) == set(names) < set(ranking(P, "forward"))
    assert choose(P, "forward").algorithm in names


def test_tasks_that_time_does_not_suffice_for_are_told(cache):
    found = tuning.tune([(P, "forward"), (OTHER, "forward")], seconds=0.0)
    assert found.left == [(P, "forward"), (OTHER, "forward")]
    assert not found.seconds
    assert not cache.exists()


def test_algorithms_take_turns_and_the_hopeless_are_timed_once(monkeypatch):
    """On a clock that only calls move on: 1 s, 1.5 s and 9 s."""
    now, calls = [0.0], []
    cost = {"im2col": 1.0, "convgemm": 1.5, "winograd": 9.0}

    def run(name, workspace):
        calls.append(name)
        now[0] += cost[name]

    monkeypatch.setattr(tuning, "bind", lambda p, direction, name, *arrays: name)
    monkeypatch.setattr(tuning, "run", run)
    monkeypatch.setattr(tuning.time, "perf_counter", lambda: now[0])
    assert tuning.measure(P, "forward", list(cost), 1000.0) == cost
    assert calls.count("winograd") == 2  # one to warm up
    assert calls.count("im2col") == calls.count("convgemm") == 1 + tuning.ROUNDS
    calls.clear()
    tuning.measure(P, "forward", list(cost), 0.0)
    assert calls == [name for name in cost for _ in range(2)]
