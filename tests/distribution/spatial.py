"""Trains small networks on meshes and writes what came out: spatial FOLDER NETWORKS MESH ...; "alone" is no mesh.

NETWORKS: names with commas between them.  A mesh is written as in height=2,width=2.
"""

import shutil
from pathlib import Path

import h5py
import numpy as np

import pydtconv as keras
from pydtconv import callbacks, config, distribution, layers, replica, tree, utils
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.profiling import Profiler
from tests.graph.spatial import networks

SAMPLES, BATCH = 5, 2  # the last batch has one sample


def made(name, how):
    utils.set_random_seed(3)
    networks.MODEL = networks.OwnSteps if how == "own" else keras.Model
    model = networks.NETWORKS[name]()
    return model, *networks.data(model, SAMPLES)


def windowed(folder, x, y):
    """The data in files, of which each rank reads its part."""
    if not (folder / "y.h5").exists() and replica.current().is_main:
        np.save(folder / "x.npy", x)
        with h5py.File(folder / "new.h5", "w") as file:
            file["labels"] = y
        (folder / "new.h5").rename(folder / "y.h5")
    replica.current().meet("the files")
    return utils.WindowedArrays(folder / "x.npy", (folder / "y.h5", "labels"), BATCH)


def results(name, folder, resumed=False):
    """NETWORK: of arrays; NETWORK@files: of files; NETWORK@resumed: the last epochs after a first one elsewhere;
    NETWORK@taken: those in one process, after a first one that ranks have trained; NETWORK@own: by steps of its own."""
    name, _, how = name.partition("@")
    model, x, y, weights = made(name, how)
    utils.set_random_seed(7)
    if how == "files":
        history = model.fit(windowed(folder, x, y), epochs=3, verbose=0, shuffle=False, validation_data=(x, y))
    elif how == "resumed":
        saved = [callbacks.BackupAndRestore(folder / "saved", delete_checkpoint=False)] * (replica.current().size > 1)
        history = model.fit(x, y, BATCH, 3 if resumed else 1, 0, saved)
        if not resumed:
            if replica.current().is_main:
                shutil.copytree(folder / "saved", folder / "taken")
            replica.current().meet("a copy of the checkpoint")
            return {}
        return {f"weight{i:02}": weight for i, weight in enumerate(model.get_weights())}
    elif how == "taken":
        begun = []
        counting = callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: begun.append(epoch))
        taken = callbacks.BackupAndRestore(folder / "taken", delete_checkpoint=False)
        history = model.fit(x, y, BATCH, 3, 0, [taken, counting])
        assert begun == [1, 2]
        return {f"weight{i:02}": weight for i, weight in enumerate(model.get_weights())}
    else:
        history = model.fit(x, y, BATCH, 3, 0, sample_weight=weights, validation_data=(x, y))
    found = {f"weight{i:02}": weight for i, weight in enumerate(model.get_weights())}
    found |= {f"history {key}": np.array(values) for key, values in history.history.items()}
    found["evaluated"] = np.array(model.evaluate(x, y, batch_size=BATCH, verbose=0))
    predictions = tree.flatten(model.predict(x, batch_size=BATCH, verbose=0))
    return found | {f"prediction{i}": part for i, part in enumerate(predictions)}


def mesh_of(text):
    parts = dict(part.split("=") for part in text.split(","))
    return distribution.DeviceMesh([int(extent) for extent in parts.values()], list(parts))


def main(folder, names, *meshes):
    config.set_floatx("float64")
    for number, mesh in enumerate(meshes):  # weights are one copy of all ranks in the first, third, ... mesh
        Graph.thresholds = Thresholds(applied_gradients=Thresholds().applied_gradients if number % 2 else 0)
        if mesh != "alone":
            distribution.set_distribution(distribution.SpatialParallel(mesh_of(mesh), bucket_size=0.002))
        for name in names.split(","):
            np.savez(
                f"{folder}/{name} {mesh} {replica.current().rank}.npz",
                **results(name, Path(folder), number + 1 == len(meshes)),
            )


def small():
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


def cut_predictions(folder):
    """Predictions that stay cut, and a time line of all ranks."""
    Graph.thresholds = Thresholds(halo_pixels=1)
    x = np.random.default_rng(0).normal(size=(3, 12, 8, 2)).astype("float32")
    whole = small().predict(x, verbose=0)
    mesh = distribution.DeviceMesh((2,), ("height",))
    distribution.set_distribution(distribution.SpatialParallel(mesh, gather_predictions=False))
    boxes()
    rows, columns = distribution.window((12, 8))
    model = small()
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
