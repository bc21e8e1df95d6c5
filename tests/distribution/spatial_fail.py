"""What goes wrong on meshes: spatial_fail:until die|stop, until rank 1 does so; spatial_fail:errors FOLDER, by case."""

import json
import os
import signal
from pathlib import Path

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils
from pydtconv.callbacks import LambdaCallback
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.trainers.step_functions import StepFunction


class Doubled(layers.NumpyLayer):
    def forward(self, x):
        return 2 * x

    def backward(self, dy, x, y):
        return 2 * dy


def use(**mesh):
    shape = distribution.DeviceMesh(list(mesh.values()), list(mesh))
    distribution.set_distribution(distribution.SpatialParallel(shape))


def made(*between):
    utils.set_random_seed(1)
    inputs = keras.Input((16, 16, 3))
    x = layers.Conv2D(4, 3, name="first")(inputs)
    for layer in between:
        x = layer(x)
    model = keras.Model(inputs, layers.Conv2D(2, 3, padding="same", name="second")(x))
    model.compile("sgd", "mse")
    return model


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(64, 16, 16, 3)).astype("float32"), rng.normal(size=(64, 14, 14, 2)).astype("float32")


class Parts(utils.PyDataset):
    """A data set that gives the rank's part of samples by itself, and on rank 1 fewer of them."""

    windowed = True

    def __init__(self, other):
        super().__init__()
        self.other = other

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return tuple(array[: 8 - self.other] for array in arrays())

    def read_share(self, index, share):
        return self[index]


def fit(x, y=None, model=None):
    (model or made()).fit(x, y, batch_size=None if y is None else 8, epochs=1, verbose=0, shuffle=False)


def limited(other):
    """One rank may take too little memory."""
    x, y = arrays()
    made().fit(x, y, batch_size=8, epochs=1, verbose=0, memory_limit=1000 if other else None)


def broken(other):
    """The loss of one rank cannot be planned."""

    def loss(y_true, y_pred):
        if other:
            raise KeyError("no such loss")
        return keras.losses.mean_squared_error(y_true, y_pred)

    model = made()
    model.compile("sgd", loss)
    fit(*arrays(), model)


CASES = {
    "memory": limited,
    "loss": broken,
    "images": lambda other: fit(*arrays(other)),
    "files": lambda other: fit(utils.WindowedArrays(*arrays(other), batch_size=8)),
    "samples": lambda other: fit(Parts(other)),
    "operator": lambda other: fit(*arrays(), made(Doubled(name="doubled"))),
    "size": lambda other: use(height=3),
    "axis": lambda other: use(rows=2),
    "no such axis": lambda other: (use(depth=2), fit(*arrays())),
    "window": lambda other: (use(depth=2), distribution.window((16, 16))),
}


def errors(folder):
    """What each case raises, before any step has run."""
    use(height=2)
    rank, found, steps = replica.current().rank, {}, []
    run = StepFunction.run
    StepFunction.run = lambda *arguments: steps.append(1) or run(*arguments)
    for case, act in CASES.items():
        try:
            act(int(rank == 1))
            found[case] = ""
        except (ValueError, RuntimeError, MemoryError, KeyError) as error:
            found[case] = str(error)
        assert not steps, case
        if case == "no such axis":
            use(height=2)
    Path(folder, f"{rank}.json").write_text(json.dumps(found))


def until(what):
    """Of one the exchange is waited for at once, of the other it goes on meanwhile."""
    Graph.thresholds = Thresholds(halo_pixels=1) if what == "stop" else Thresholds()
    use(height=2)

    def on_train_batch_begin(batch, logs):
        if replica.current().rank == 1 and batch == 4:
            os.kill(os.getpid(), {"die": signal.SIGKILL, "stop": signal.SIGSTOP}[what])

    model = made()
    model.fit(*arrays(), 8, 2, 0, [LambdaCallback(on_train_batch_begin=on_train_batch_begin)], shuffle=False)
    print("not reached", flush=True)
