"""Calibration of the cost model: constants that are fitted to measured times, kept, read again, and used."""

import json
import math
import warnings
from collections import Counter

import pytest

from pydtconv import config
from pydtconv.cli import doctor, main
from pydtconv.conv import ConvProblem, calibrated, calibration, choose, estimates
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.calibration import fit, fitted
from pydtconv.conv.estimates import COSTS, Work
from pydtconv.graph.schedule.step_times import StepTimes, estimate_of_bytes
from pydtconv.layers import Conv2D, Flatten, Input
from pydtconv.models import Sequential

P = ConvProblem(64, 32, 32, 64, 64, 3, padding="same")
MACHINE = calibrated.Machine(3e11, 4e10, 5e-6)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path))
    calibrated.forget()
    yield tmp_path / "calibration.json"
    calibrated.forget()


def times_of(given, factor=lambda p, direction, row: 1.0):
    """What this machine would take: the cost model's times, times a factor."""
    found = {}
    for i, p in enumerate(given):
        for direction in ("forward", "backward_data", "backward_weights"):
            for row in TABLE.values():
                if row.reason(p, direction) is None:
                    best = row.of(p, direction)
                    model = estimates.seconds(COSTS[row.family, direction], best.amounts(p, direction))
                    found[i, direction, best.name] = [model * factor(p, direction, row.family)] * 3
    return found


def calibrate(monkeypatch, factor, dtype="float32"):
    monkeypatch.setattr(calibration, "measure", lambda given, *_: times_of(given, factor))
    monkeypatch.setattr(calibration, "measure_machine", lambda _: MACHINE)
    return calibration.calibrate(dtype)


def slow_winograd(_p, _direction, family):
    return 20.0 if family == "winograd" else 2.0


def test_what_is_chosen_depends_on_what_was_measured(monkeypatch):
    before = TABLE["direct"].seconds(P, "forward")
    assert choose(P, "forward").algorithm == "winograd"
    calibrate(monkeypatch, slow_winograd)
    assert choose(P, "forward").algorithm != "winograd"
    calibrated.forget()  # from the file
    assert choose(P, "forward").algorithm != "winograd"
    assert TABLE["direct"].seconds(P, "forward") == pytest.approx(2 * before * config.num_threads() / 2, rel=0.1)


def test_it_belongs_to_threads_and_dtype(monkeypatch):
    calibrate(monkeypatch, slow_winograd)
    config.set_num_threads(config.num_threads() + 1)
    assert calibrated.in_force() is None
    assert choose(P, "forward").algorithm == "winograd"
    config.set_num_threads(config.num_threads() - 1)
    assert calibrated.in_force() is not None
    assert calibrated.in_force("float64") is None


def test_constants_come_near_those_of_the_machine():
    """Of a machine whose products take twice and whose memory takes three times as long."""
    known = COSTS["convgemm", "forward"]
    real = Work(*(2 * known.products, *(3 * each for each in known[1:])))
    rows = [TABLE["convgemm"].amounts(p, "forward") for p in calibration.problems("float32")[:14]]
    found = fit([(row, estimates.seconds(real, row)) for row in rows], known, "convgemm", 2.4)
    for row in rows:
        assert estimates.seconds(found, row) == pytest.approx(estimates.seconds(real, row), rel=0.2)
    assert all(each >= 0 for each in found)
    assert found.tiles == 0  # what an algorithm does not do costs nothing


def test_a_single_late_run_moves_little():
    given = calibration.problems("float32")
    usual, costs = fitted(given, times_of(given))
    assert usual == pytest.approx(1.0)
    late, found = fitted(given, times_of(given, lambda p, d, family: 9.0 if p is given[3] else 1.0))
    assert late == pytest.approx(1.0)
    for key, each in costs.items():
        if key[0] != "depthwise":
            assert found[key].products / each.products < 3


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (lambda *_: math.nan, "im2col forward: expected seconds above 0, got nan"),
        (lambda *_: -1.0, "expected seconds above 0"),
        (lambda *_: 1e6, "expected 0.001 to 1000, got 1e"),
        (lambda p, *_: 1.0 if p.iw > 16 else 400.0, "other programs run, try again later"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(monkeypatch, cache, factor, message):
    calibrate(monkeypatch, lambda *_: 1.0)
    before = cache.read_bytes()
    with pytest.raises(ValueError, match=message):
        calibrate(monkeypatch, factor)
    assert cache.read_bytes() == before
    assert choose(P, "forward").algorithm == "winograd"


def test_a_machine_that_others_use_is_refused(monkeypatch, cache):
    monkeypatch.setattr(calibration, "measure", lambda given, *_: times_of(given))
    monkeypatch.setattr(calibration.microkernels, "peak_gflops", lambda *_: 1e6)
    with pytest.raises(ValueError, match=r"float32: expected products at 250000 GFLOPS or more, 25% of the peak, got"):
        calibration.calibrate("float32")
    assert not cache.exists()
    monkeypatch.setattr(calibration.microkernels, "peak_gflops", lambda *_: 1e-3)
    calibration.calibrate("float32")
    assert calibrated.in_force().machine.flops > 1e8


def test_one_call_is_timed_where_it_takes_longer_than_the_time_for_all():
    calls = []
    assert 0 < calibration._best(lambda: calls.append(len(calls)), 0.0) < math.inf
    assert len(calls) == 2


def test_unsteady_times_are_refused():
    given = calibration.problems("float32")
    times = {key: [each[0], *[9 * each[0]] * 4] for key, each in times_of(given).items()}
    with pytest.raises(ValueError, match=r"at most 4 times the shortest, got 9\.0 times: other programs run"):
        fitted(given, times)


@pytest.mark.parametrize("damage", ["torn", "negative", "lacking", "not a number"])
def test_a_damaged_file_is_ignored_with_a_warning(monkeypatch, cache, damage):
    calibrate(monkeypatch, slow_winograd)
    contents = json.loads(cache.read_text())
    name = next(name for name in contents["figures"] if name.endswith("direct forward products"))
    if damage == "lacking":
        del contents["figures"][name]
    else:
        contents["figures"][name] = -1.0 if damage == "negative" else "fast"
    cache.write_text(json.dumps(contents)[: 99 if damage == "torn" else None])
    calibrated.forget()
    with pytest.warns(RuntimeWarning, match="calibration.json is ignored"):
        assert choose(P, "forward").algorithm == "winograd"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        choose(P, "backward_data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file is read once more before it is replaced
        calibrate(monkeypatch, slow_winograd)
    assert choose(P, "forward").algorithm != "winograd"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"figures": []}, "figures: expected an object of names and numbers, got list"),
        ({"figures": None}, "figures: expected an object of names and numbers, got NoneType"),
        ({"version": 0}, "expected 'pydtconv calibrations of the cost model', version 1"),
        (math.nan, "usual: expected a finite number, got nan"),
        (-math.inf, "usual: expected a finite number, got -inf"),
        (10**400, "usual: expected a finite number, got 10000"),  # no float holds it
        (True, "usual: expected a finite number, got True"),
        ("1.0", "usual: expected a finite number, got '1.0'"),
        ([1.0], r"usual: expected a finite number, got \[1\.0\]"),
    ],
)
def test_what_a_file_holds_instead_of_figures_is_named(monkeypatch, cache, change, message):
    calibrate(monkeypatch, slow_winograd)
    contents = json.loads(cache.read_text())
    name = next(name for name in contents["figures"] if name.endswith("usual"))
    contents |= change if isinstance(change, dict) else {"figures": contents["figures"] | {name: change}}
    cache.write_text(json.dumps(contents))
    calibrated.forget()
    with pytest.warns(RuntimeWarning, match=f"calibration.json is ignored: .*{message}"):
        assert choose(P, "forward").algorithm == "winograd"


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"figures": {}}', "1" * 5000])
def test_a_file_of_something_else_is_ignored_with_a_warning(cache, text):
    cache.write_text(text)
    calibrated.forget()
    with pytest.warns(RuntimeWarning, match=r"calibration.json is ignored: .*expected \W?pydtconv calibrations"):
        assert choose(P, "forward").algorithm == "winograd"


def test_steps_are_expected_to_take_what_the_machine_does(monkeypatch):
    model = Sequential([Input((16, 16, 64)), Conv2D(64, 3, padding="same", activation="relu"), Flatten()])
    model.compile("sgd", "mse")
    plan = model.plan(8)
    before = StepTimes(plan.threads, {}).of(plan.steps)
    calibrate(monkeypatch, lambda *_: 100.0)
    after = StepTimes(plan.threads, {}).of(plan.steps)
    assert sum(after) > 10 * sum(before)
    assert min(each for each in after if each) >= MACHINE.start


def test_copies_of_an_exchange_take_what_they_do_on_the_machine(monkeypatch):
    """40 MB at 40 GB/s take a millisecond, and a call 5 us."""
    threads = config.num_threads()
    usual = estimate_of_bytes(40_000_000, threads)
    calibrate(monkeypatch, slow_winograd)
    assert estimate_of_bytes(40_000_000, threads) == pytest.approx(1.005e-3) != usual
    assert estimate_of_bytes(0, threads) == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_measuring_takes_turns_and_leaves_out_what_is_far_behind(monkeypatch, dtype):
    monkeypatch.setattr(calibration, "ROUNDS", 2)
    monkeypatch.setattr(calibration, "FEWEST", 2)
    given = [ConvProblem(2, 8, 8, 16, 16, k, 1, "same", dtype=dtype) for k in (1, 3)]
    times = calibration.measure(given, 0.0)
    assert all(1 <= len(each) <= 2 and min(each) > 0 for each in times.values())
    assert {key[1] for key in times} == {"forward", "backward_data", "backward_weights"}
    turns = calibration._in_turns([(i, "forward", name) for i in range(2) for name in ("a", "b", "c")])
    assert [key[0] for key in turns] == [0, 1, 0, 1, 0, 1]
    assert Counter(turns) == Counter(set(turns))


def test_command_and_doctor(monkeypatch, capsys):
    assert any("float32: not calibrated" in text for _, text in doctor.report(measure=False))
    monkeypatch.setattr(calibration, "measure", lambda given, *_: times_of(given))
    monkeypatch.setattr(calibration, "measure_machine", lambda _: MACHINE)
    assert main(["tune", "--calibrate", "--dtype", "float32"]) == 0
    text = capsys.readouterr().out
    assert "float32: calibrated, " in text
    assert "300 GFLOPS, 40.0 GB/s, 5.0 us a call" in text
    lines = [line for _, line in doctor.report(measure=False)]
    assert any("float32: calibrated, " in line for line in lines)
    assert any("products in forward, GFLOPS: convgemm 216" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--calibrate", "--model", "resnet20"], "--calibrate: expected no --model"),
        (["--calibrate", "--dtype", "int8"], "--dtype: expected one of float32, float64, bfloat16, mixed_bfloat16"),
        ([], "--model: expected a network, or --calibrate"),
    ],
)
def test_wrong_words(capsys, words, message):
    assert main(["tune", *words]) == 2
    assert message in capsys.readouterr().err
