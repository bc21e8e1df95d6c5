"""Tuning: what is timed, kept, read again, and taken."""

import json
import subprocess
import sys
from subprocess import PIPE

import pytest

from pydtconv import config, microkernels
from pydtconv.conv import ConvProblem, algorithms, choose, timings, tuning, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.selection import ranking
from tests.marks import chosen_freely

#: seconds that tuning here cannot take on any machine
ENOUGH = 1000.0
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
    with timings.alone(1.0):
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
    keep(P, "forward", winograd=1e-6, im2col=1e-9)
    keep(P, "backward_weights", winograd=1e-6, im2col=1e-3)
    assert choose(P, "backward_weights").algorithm == "winograd"
    assert choose(P, "forward").why == "fastest measured"
    config.set_conv_precision("strict")
    try:
        assert choose(P, "backward_weights").algorithm == "im2col"
        assert choose(P, "forward").why == "ranking by cost model"  # what was measured is of one image size
    finally:
        config.set_conv_precision("fast")


@chosen_freely
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
        timings.key(ConvProblem(1, 6, 6, 4, 8, (3, 3), padding="same", dtype="bfloat16"), "forward"),
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


def test_what_is_tuned_in_bfloat16_belongs_to_it(monkeypatch):
    monkeypatch.setattr(tuning, "ROUNDS", 1)
    short = ConvProblem(2, 6, 6, 8, 8, (3, 3), padding="same", dtype="bfloat16")
    long = ConvProblem(2, 6, 6, 8, 8, (3, 3), padding="same")
    found = tuning.tune([(short, "forward"), (short, "backward_weights")], 5.0)
    names = {TABLE[name].family for names in found.seconds.values() for name in names}
    assert {"direct", "winograd"} <= names <= {name for name, row in TABLE.items() if row.bfloat16}
    assert choose(short, "forward").why == "fastest measured"
    assert choose(long, "forward").why == "ranking by cost model"


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
    found = tuning.tune(tasks, ENOUGH, progress=lambda done, of, task: seen.append((done, of, task)))
    assert seen == [(0, 2, tasks[0]), (1, 2, tasks[1])]
    for p, direction in tasks:
        assert set(found.seconds[p, direction]) >= set(ranking(p, direction))
        others = set(found.seconds[p, direction]) - set(ranking(p, direction))
        assert all(name.startswith("fft") for name in others)  # some of its bases are tried
        assert others or p is not P
        best = min(found.seconds[p, direction], key=found.seconds[p, direction].get)
        assert choose(p, direction).algorithm == best
    timings.forget()
    seen.clear()
    assert tuning.tune(tasks, ENOUGH, progress=lambda *done: seen.append(done)).seconds == found.seconds
    assert not seen
    tuning.tune(tasks, ENOUGH, again=True, progress=lambda *done: seen.append(done))
    assert len(seen) == 2


def test_a_workspace_limit_leaves_algorithms_out():
    limit = min(workspace_bytes(P, "forward", name) for name in ranking(P, "forward"))
    found = tuning.tune([(P, "forward")], ENOUGH, workspace_limit=limit)
    names = [name for name in ranking(P, "forward") if workspace_bytes(P, "forward", name) <= limit]
    assert set(found.seconds[P, "forward"]) == set(names) < set(ranking(P, "forward"))
    assert choose(P, "forward").algorithm in names


def test_a_workspace_limit_in_force_counts_for_what_was_measured_and_for_what_was_not():
    need = {name: workspace_bytes(P, "forward", name) for name in ranking(P, "forward")}
    large = max(need, key=need.get)
    keep(P, "forward", **{large: 1e-6})
    assert choose(P, "forward").algorithm == large
    try:
        config.set_conv_workspace_limit(need[large] - 1)
        assert choose(P, "forward").why == "ranking by cost model"
        assert need[choose(P, "forward").algorithm] < need[large]
        config.set_conv_workspace_limit(0)
        assert need[choose(P, "forward").algorithm] == min(need.values())
        assert choose(P, "forward", large).algorithm == large
    finally:
        config.set_conv_workspace_limit(None)
    for wrong in (-1, 0.5, True, "1"):
        with pytest.raises(ValueError, match=r"set_conv_workspace_limit: expected None or bytes of 0 or more, got"):
            config.set_conv_workspace_limit(wrong)


def test_what_takes_the_longest_comes_first_and_the_slow_by_the_model_are_left_out(monkeypatch):
    timed = []

    def measure(p, direction, names, seconds):
        timed.append((p, direction))
        assert TABLE[names[-1]].seconds(p, direction) <= 1.5 * TABLE[names[0]].seconds(p, direction)
        return dict.fromkeys(names, 1e-3)

    monkeypatch.setattr(tuning, "measure", measure)
    large = ConvProblem(8, 16, 16, 64, 64, (3, 3), padding="same")
    tuning.tune([(OTHER, "forward"), *[(P, "forward")] * 2, (large, "forward")], near=1.5)
    assert [p for p, _ in timed] == [large, P, OTHER]


def test_a_final_decision_is_not_made_again(cache):
    tasks = [(P, "forward"), (OTHER, "forward")]
    found = tuning.tune(tasks, seconds=0.0, final=True)
    assert set(found.left) == set(tasks)
    assert all(timings.decided(*task) for task in tasks)
    assert choose(P, "forward").why == "ranking by cost model"
    timings.forget()
    assert not tuning.tune(tasks, seconds=ENOUGH, final=True).left
    assert choose(P, "forward").why == "ranking by cost model"
    tuning.tune(tasks, seconds=ENOUGH)  # asked for
    assert choose(P, "forward").why == "fastest measured"


def test_times_of_other_algorithms_are_kept():
    keep(P, "forward", im2col=1e-3, convgemm=2e-3)
    keep(P, "forward", convgemm=5e-4)
    assert timings.measured(P, "forward") == {"im2col": 1e-3, "convgemm": 5e-4}


def test_an_interrupt_keeps_what_was_timed_before_it(monkeypatch):
    real = tuning.measure

    def measure(p, *rest):
        if p == OTHER:
            raise KeyboardInterrupt
        return real(p, *rest)

    monkeypatch.setattr(tuning, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        tuning.tune([(P, "forward"), (OTHER, "forward")], final=True)
    timings.forget()
    assert timings.decided(P, "forward")
    assert not timings.decided(OTHER, "forward")


@pytest.mark.slow
def test_another_process_that_tunes_is_waited_for_but_not_for_ever(cache):
    """A real process holds the lock, then one writes an entry."""
    hold = "import sys; from pydtconv.conv import timings\nwith timings.alone(5): print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(TimeoutError, match=r"another process has been tuning for 0\.2 s"):
            tuning.tune([(P, "forward")], seconds=0.2)
        assert not cache.exists()
        assert choose(P, "forward").why == "ranking by cost model"  # reading needs no lock
        other.communicate("\n", timeout=60)
    write = f"""
from pydtconv.conv import ConvProblem, timings
with timings.alone(5): timings.add({{{timings.key(P, "forward")!r}: {{"im2col": 1e-9}}}})
"""
    subprocess.run([sys.executable, "-c", write], check=True, timeout=60)
    assert tuning.tune([(P, "forward")], seconds=ENOUGH, final=True).seconds == {(P, "forward"): {"im2col": 1e-9}}


@pytest.mark.slow
def test_processes_that_write_at_the_same_time_lose_nothing(cache):
    write = "import sys; from pydtconv.conv import timings\nfor i in range(20):\n with timings.alone(60): timings.add("
    write += "{sys.argv[1] + str(i): {'im2col': 1.0}})"
    running = [subprocess.Popen([sys.executable, "-c", write, name]) for name in "ab"]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    (entries,) = json.loads(cache.read_text())["builds"].values()
    assert set(entries) == {f"{name}{i}" for name in "ab" for i in range(20)}


def test_tasks_that_time_does_not_suffice_for_are_told(cache):
    found = tuning.tune([(P, "forward"), (OTHER, "forward")], seconds=0.0)
    assert found.left == [(P, "forward"), (OTHER, "forward")]
    assert not found.seconds
    assert not cache.exists()


def test_algorithms_take_turns_and_the_hopeless_are_timed_once(monkeypatch):
    """On a clock that only calls move on: 1 ms, 1.1 ms, 1.5 ms and 9 ms."""
    now, calls = [0.0], []
    cost = {"im2col": 1e-3, "direct": 1.125e-3, "convgemm": 1.5e-3, "winograd": 9e-3}

    def run(name, workspace):
        calls.append(name)
        now[0] += cost[name]

    monkeypatch.setattr(tuning, "bind", lambda p, direction, name, *arrays: name)
    monkeypatch.setattr(tuning, "run", run)
    monkeypatch.setattr(tuning.time, "perf_counter", lambda: now[0])
    assert tuning.measure(P, "forward", list(cost), 1000.0) == pytest.approx(cost)
    assert calls.count("winograd") == 2  # one to warm up
    assert calls.count("convgemm") == 1 + tuning.EARLY_TURNS
    assert calls.count("im2col") == calls.count("direct") == 1 + tuning.ROUNDS
    calls.clear()
    monkeypatch.setattr(tuning, "ENOUGH", 2e-3)
    tuning.measure(P, "forward", ["im2col"], 1000.0)
    assert len(calls) == 1 + tuning.EARLY_TURNS
    calls.clear()
    tuning.measure(P, "forward", list(cost), 0.0)
    assert calls == [name for name in cost for _ in range(2)]


def test_bfloat16_is_timed_and_has_a_key_of_its_own():
    p = ConvProblem(1, 6, 6, 4, 8, (3, 3), padding="same", dtype="bfloat16")
    for direction in ("forward", "backward_data", "backward_weights"):
        assert tuning.measure(p, direction, ["direct"], 0.0)["direct"] > 0
    assert timings.key(p, "forward") != timings.key(P, "forward")
