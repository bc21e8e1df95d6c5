"""The time line of several ranks: computing, communication, waiting, in one file."""

import json

import pytest

from pydtconv.profiling import Profile
from tests.distribution.ranks import needs_mpi, run, run_well

pytestmark = needs_mpi
STEPS = 10  # that a profiler records


def spans(path):
    """Spans by (rank, track)."""
    contents = json.loads(path.read_text())
    found = {}
    for event in contents["traceEvents"]:
        if event["ph"] == "X":
            found.setdefault((event["pid"], event["cat"]), []).append(event)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("blocking", [False, True], ids=["overlapped", "blocking"])
def test_train_writes_the_time_line_of_all_ranks(tmp_path, blocking):
    words = ["train", "--model", "resnet20", "--dataset", "digits", "--samples", "416", "--epochs", "1"]
    words += ["--batch-size", "32", "--bucket-size", "0.2", "--output", tmp_path / "out"]
    words += ["--profile", tmp_path / "step.json", *(["--blocking"] if blocking else [])]
    done = run_well(2, "-m", "pydtconv", *words)
    assert done.stdout.count("time line:") == 1
    found = spans(tmp_path / "step.json")
    assert set(found) >= {(rank, track) for rank in (0, 1) for track in ("compute", "communication", "wait", "host")}
    for rank in (0, 1):
        backwards = [e for e in found[rank, "compute"] if e["name"].endswith("backward_weights")]
        buckets = [e for e in found[rank, "communication"] if "bucket" in e["name"]]
        count = int(buckets[0]["name"].split(" of ")[1].split()[0])
        assert count > 1
        assert len(buckets) == count * STEPS
        layers = len({e["name"] for e in backwards})
        for step in range(STEPS):
            last = backwards[(step + 1) * layers - 1]
            first = buckets[step * count]
            assert (first["ts"] > last["ts"] + last["dur"]) is blocking
    profile = Profile.load(tmp_path / "step.json")
    assert profile.batch_size == 16
    assert profile.ranks == 2
    assert len(profile.step_seconds) == 2 * STEPS  # of both ranks
    assert len(profile.reduction_seconds) == STEPS
    assert "wait" in {timing.node for timing in profile.timings}


@pytest.mark.slow
def test_clocks_are_aligned_and_the_same_steps_are_recorded(tmp_path):
    """A reduction goes on in both ranks at a time, whatever their clocks say."""
    run_well(2, "traced", tmp_path / "time.json")
    found = spans(tmp_path / "time.json")
    steps = [[event["name"] for event in found[rank, "step"]] for rank in (0, 1)]
    assert steps[0] == steps[1]
    assert len(steps[0]) == 5  # of eight, the last of which is another one of fewer samples
    buckets = [{event["name"]: event for event in found[rank, "communication"]} for rank in (0, 1)]
    assert buckets[0].keys() == buckets[1].keys()
    assert len(buckets[0]) > len(steps[0])
    slack = 100_000  # microseconds, for ranks that wait for a core; without offsets clocks differ by seconds
    for name, own in buckets[0].items():
        other = buckets[1][name]
        for a, b in ((own, other), (other, own)):
            assert a["ts"] < b["ts"] + b["dur"] + slack, name


@pytest.mark.slow
def test_a_training_of_two_steps_is_recorded(tmp_path):
    words = ["train", "--model", "mlp", "--dataset", "digits", "--samples", "64", "--epochs", "1"]
    words += ["--output", tmp_path / "out", "--profile", tmp_path / "step.json"]
    done = run(2, "-m", "pydtconv", *words)
    assert done.returncode == 0, done.stderr
    assert Profile.load(tmp_path / "step.json").timings
