"""Short steps: the networks, and what is measured of them."""

import argparse
import json

import pytest

from benchmarks import small


@pytest.mark.parametrize("case", small.CASES, ids=lambda case: case.network)
def test_a_step_is_measured_with_its_plan(case):
    found = json.loads(json.dumps(small.trained(small.network(case), 2, 1)))
    assert len(found["seconds"]) == len(found["plan"]) == 1
    assert 0 < found["plan"][0] < found["seconds"][0]
    assert found["nodes"] > 10


@pytest.mark.slow
def test_chains_differ_by_their_nodes():
    found = small.node_cost("dense", 2)
    assert set(found) == {"node", "rest", "layer"}


def test_the_ratio_is_to_the_fastest_peer(monkeypatch, tmp_path):
    seconds = {"ours": 1e-3, "torch nchw": 3e-3, "keras-jax": 2e-3}
    monkeypatch.setattr(small.Sides, "run", lambda self, side: {"seconds": [seconds[side]], "plan": [5e-4], "nodes": 3})
    options = argparse.Namespace(steps=1, threads=1, rounds=2, pythons={})
    row = small.row(small.CASES[1], list(seconds), options, tmp_path)
    assert row["fastest peer / ours"] == pytest.approx(2)
    assert row["plan us"] == pytest.approx(500)
