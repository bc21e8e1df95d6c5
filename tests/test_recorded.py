"""Functions, metrics, losses and schedules give what they gave when Keras gave the same."""

import json

import pytest

from tests.recorded import FILE, digest, results

RECORDED = json.loads(FILE.read_text())
RESULTS = dict(results())

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@pytest.mark.parametrize("name", RECORDED)
def test_results_are_those_recorded(name):
    found = [digest(result) for result in RESULTS[name]()]
    assert len(found) == len(RECORDED[name])
    for (total, size), want in zip(found, RECORDED[name], strict=True):
        assert total == pytest.approx(want, rel=1e-5, abs=1e-5 * (1 + size))
