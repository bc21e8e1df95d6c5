"""The table of a profile sums to the step that it tells; what a file says of all steps."""

import pytest

from pydtconv.profiling import Profile, Timing


@pytest.mark.parametrize("seconds", [0.1, 0.04])
def test_each_table_sums_to_the_step(seconds):
    timings = [Timing(i, f"n{i}", f"op{i % 3}", "forward", 0.001 * (i + 1)) for i in range(8)]
    profile = Profile("net", 4, 1, "float32", "AUTO", "cpu", 3, seconds, 10, timings)
    assert profile.rest.seconds == pytest.approx(seconds - 0.036)
    for lines in (list(profile.lines(top=3)), list(profile.lines())):
        _, *rows = lines
        second = next(i for i, row in enumerate(rows[1:], 1) if "ms  share" in row)
        for table in (rows[1:second], rows[second + 1 :]):
            assert sum(float(row.split()[0]) for row in table) == pytest.approx(1e3 * seconds, abs=0.01)
            assert "rest" in table[-1]
    assert sum("other parts" in line for line in profile.lines(top=3)) == 1
    assert not any("other parts" in line for line in profile.lines())


def test_a_file_may_say_nothing_of_all_steps():
    values = Profile("net", 4, 1, "float32", "AUTO", "cpu", 3, 0.1, 10).to_dict()
    for name in ("step_seconds", "reduction_seconds", "ranks"):
        del values[name]
    found = Profile.from_dict(values)
    assert (found.step_seconds, found.reduction_seconds, found.ranks) == ([], [], 1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("step_seconds", [0.1, 0.0], "step_seconds: expected a list of seconds above 0, got"),
        ("step_seconds", 3.0, "step_seconds: expected a list of seconds above 0, got 3.0"),
        ("reduction_seconds", ["1"], "reduction_seconds: expected a list of seconds above 0, got"),
        ("reduction_seconds", [float("nan")], "reduction_seconds: expected a list of seconds above 0, got"),
        ("ranks", 0, "ranks: expected 1 or more, got 0"),
    ],
)
def test_what_are_no_seconds_and_ranks_is_refused(name, value, message):
    values = Profile("net", 4, 1, "float32", "AUTO", "cpu", 3, 0.1, 10).to_dict()
    with pytest.raises(ValueError, match=message):
        Profile.from_dict({**values, name: value})
