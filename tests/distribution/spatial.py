"""Trains small networks on meshes and writes what came out: spatial.py FOLDER NETWORKS MESH ...; "alone" is no mesh.

NETWORKS: names with commas between them.  A mesh is written as in height=2,width=2.
"""

import shutil
import sys
from pathlib import Path

import h5py
import numpy as np

import pydtconv as keras
from pydtconv import callbacks, config, distribution, replica, tree, utils
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
    for number, mesh in enumerate(meshes):
        if mesh != "alone":
            distribution.set_distribution(distribution.SpatialParallel(mesh_of(mesh), bucket_size=0.002))
        for name in names.split(","):
            np.savez(
                f"{folder}/{name} {mesh} {replica.current().rank}.npz",
                **results(name, Path(folder), number + 1 == len(meshes)),
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
