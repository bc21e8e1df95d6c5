"""Random networks on meshes of two to four processes, beside one process: weights, losses, predictions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from tests.distribution.ranks import REASON
from tests.distribution.ranks import run as run_ranks
from tests.fuzz import trials

PROGRAM = Path(__file__).with_name("on_ranks.py")
SECONDS = 100


def run(seed: int) -> None:
    if REASON:
        trials.count("meshes", f"left out: {REASON}")
        return
    ranks = int(np.random.default_rng(seed).choice((2, 2, 3, 4)))
    trials.keep("ranks.txt", f"seed {seed}, {ranks} ranks".encode())
    paths = os.pathsep.join([str(PROGRAM.parents[2]), os.environ.get("PYTHONPATH", "")])
    settings = {"OMP_WAIT_POLICY": "passive", "PYDTCONV_STALL_TIMEOUT": 60, "PYTHONPATH": paths}
    done = run_ranks(ranks, str(PROGRAM), seed, timeout=SECONDS, **settings)
    if done.returncode:
        raise AssertionError(
            f"{ranks} ranks: exit status {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        )
    for kind, number in json.loads(done.stdout.splitlines()[-1]).items():
        what, _, outcome = kind.rpartition(", ")
        for _ in range(number):
            trials.count(what, outcome)
