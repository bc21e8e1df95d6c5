"""Trains on several ranks with tensors on a disk: offloaded FOLDER RESULT SHARE; a share of 0 is without.

The limit is that share of what the step of a rank takes.  Each rank writes RESULT.rank.npz: weights, and how many
tensors its plan moves.
"""

import numpy as np

import pydtconv as keras
from pydtconv import distribution, replica
from pydtconv.graph import Disk, disk_speed
from tests.graph.networks import residual


def main(folder, result, share):
    # whether tensors move depends on the disk: a busy one has the planner choose other means, and nothing is shown
    disk_speed.measure = lambda folder: Disk(50e9, 50e9, 1.0, 0.0)
    distribution.initialize()
    distribution.set_distribution(distribution.DataParallel())
    keras.utils.set_random_seed(5)
    rank, ranks = replica.current().rank, replica.current().size
    rng = np.random.default_rng(0)
    x, y = rng.random((48, 32, 32, 3), np.float32), rng.integers(0, 10, 48)
    model = residual(32, 16)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(True))
    options = {}
    if float(share):
        options = {"memory_limit": int(float(share) * model.plan(16 // ranks).peak_bytes), "offload": folder}
    model.fit(x, y, batch_size=16, verbose=0, **options)
    offloaded = [plan.offloaded for plan in model._pydt_steps.plans]
    moved = sum(len(each.moved) for each in offloaded if each is not None)
    weights = {f"weight{i:02}": weight for i, weight in enumerate(model.get_weights())}
    np.savez(f"{result}.{rank}.npz", moved=moved, **weights)
