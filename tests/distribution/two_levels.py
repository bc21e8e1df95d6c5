"""Trains on ranks that MPI takes for those of several hosts: two_levels FOLDER.

FOLDER/WAY.rank.npz has weights and the optimizer's variables, FOLDER/told.json how gradients came together, and what
`pydtconv doctor` says of that.
"""

import dataclasses
import json

import numpy as np

from pydtconv import config, distribution, optimizers, replica
from pydtconv.distribution import report
from pydtconv.distribution.gradients import backend_choice
from pydtconv.distribution.mpi.launch import world
from tests.distribution import shards

#: options of DataParallel, and how many ranks of a host talk to others: None for as many as are the fastest
WAYS = {
    "measured": ({}, None),
    "one": ({"bucket_size": 0.005}, 1),
    "two": ({"overlap": False}, 2),
    "optimizer": ({"shard": "optimizer"}, 2),
    "gradients": ({"shard": "gradients"}, 1),
    "bfloat16": ({"wire": "bfloat16"}, 2),
    "optimizer, bfloat16": ({"wire": "bfloat16", "shard": "optimizer"}, 1),
}
RUNS = {
    "adam": lambda: shards.trained(optimizers.Adam(0.01)),
    "two dtypes": lambda: shards.trained(
        optimizers.AdamW(0.01, global_clipnorm=0.02, gradient_accumulation_steps=3), 1, layer={"dtype": "float32"}
    ),
}


def main(folder):
    config.set_floatx("float64")
    distribution.initialize()
    measured = backend_choice.two_levels
    told = {"doctor": report.way_of_gradients(world())[0]}
    for way, (options, lanes) in WAYS.items():
        distribution.set_distribution(distribution.DataParallel(**{"bucket_size": 0.002, **options}))

        def forced(channels, lanes=lanes):
            found = measured(channels)
            return found if lanes is None else dataclasses.replace(found, seconds={lanes: found.seconds[lanes]})

        backend_choice.two_levels = forced
        found, here = {}, replica.current()
        for name, run in RUNS.items():
            found |= {f"{name}: {key}": value for key, value in shards.results(run()).items()}
        np.savez(f"{folder}/{way}.{here.rank}.npz", **found)
        told[way] = here.way_of_gradients
    if here.rank == 0:
        with open(f"{folder}/told.json", "w") as file:
            json.dump(told, file)
