"""Predictions that stay cut, and a time line of all ranks: spatial_more.py FOLDER."""

import sys
from pathlib import Path

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils
from pydtconv.graph.schedule import halos
from pydtconv.profiling import Profiler


def made():
    utils.set_random_seed(3)
    inputs = keras.Input((12, 8, 2))
    x = layers.Conv2D(3, 3, padding="same", activation="relu", name="first")(inputs)
    model = keras.Model(inputs, layers.Conv2D(2, 3, padding="same", name="second")(x))
    model.compile("sgd", "mse")
    return model


def boxes():
    """Messages between boxes of arrays, in one piece, as rows and as elements with gaps between them, twice."""
    here = replica.current()
    other = 1 - here.rank
    for box in ((slice(1, 2),), (slice(None), slice(1, 3)), (slice(0, 3, 2), slice(None), slice(1, 4), slice(0, 1))):
        own, found = (np.zeros((3, 4, 5, 2), "float32") for _ in range(2))
        transfer = here.exchanger.transfer([(other, own[box])], [(other, found[box])], "boxes")
        for step in range(2):
            own[...] = np.arange(own.size).reshape(own.shape) + 1000 * (here.rank + 10 * step)
            transfer.start()
            transfer.wait()
            expected = np.zeros_like(own)
            expected[box] = (own + 1000 * (other - here.rank))[box]
            np.testing.assert_array_equal(found, expected)


def main(folder):
    halos.LEAST_PIXELS = 1
    x = np.random.default_rng(0).normal(size=(3, 12, 8, 2)).astype("float32")
    whole = made().predict(x, verbose=0)
    mesh = distribution.DeviceMesh((2,), ("height",))
    distribution.set_distribution(distribution.SpatialParallel(mesh, gather_predictions=False))
    boxes()
    rows, columns = distribution.window((12, 8))
    model = made()
    part = model.predict(x, batch_size=2, verbose=0)
    assert part.shape == (3, 6, 8, 2)
    np.testing.assert_allclose(part, whole[:, rows, columns], rtol=1e-5, atol=1e-6)
    with Profiler(model, steps=2, skip=1) as profiler:
        for _ in range(3):
            model.train_on_batch(x, whole)
    kinds = {(timing.kind, timing.direction) for timing in profiler.profile.timings}
    assert {("halo", "start"), ("halo", "wait"), ("conv", "forward"), ("conv", "backward_weights")} <= kinds
    profiler.write(Path(folder) / "step.json")
    print(f"rank {replica.current().rank} done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
