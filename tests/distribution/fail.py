"""Goes wrong on one rank, within training: fail WHAT RANK [OPTION=VALUE ...] of DataParallel."""

import ast
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils
from pydtconv.callbacks import Callback, LambdaCallback
from pydtconv.support.launcher import launched


def model_of(filters):
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(filters, 3, activation="relu", name="first")(inputs)
    model = keras.Model(inputs, layers.Dense(2, name="last")(layers.Flatten()(x)))
    model.compile("sgd", "mse")
    return model


class Refusing(Callback):
    """An exception in the fifth batch of one rank."""

    def __init__(self, here):
        super().__init__()
        self.here = here

    def on_test_batch_begin(self, batch, logs=None):
        if self.here and batch == 4:
            raise KeyError("on purpose")

    on_predict_batch_begin = on_test_batch_begin


def main(what, rank, *given):
    if what == "version" and launched()[1] == int(rank):
        keras.__version__ = "9.9.9"
    options = {name: ast.literal_eval(value) for name, _, value in (each.partition("=") for each in given)}
    options |= {"check_gradients": what == "nan"}
    if what == "options" and launched()[1] == int(rank):
        options = {}
    distribution.set_distribution(distribution.DataParallel(**options))
    if what == "kill":
        lines = Path("/proc/self/maps").read_text().splitlines() if Path("/proc/self/maps").exists() else ()
        named = [line for line in lines if "/mpich_shm" in line and not line.endswith("(deleted)")]
        print(f"shared memory with a name: {len(named)}", flush=True)
    utils.set_random_seed(1)
    here = replica.current().rank == int(rank)
    x, y = np.ones((64, 8, 8, 3), "float32"), np.ones((64, 2), "float32")

    def on_train_batch_begin(batch, logs):
        if not here or batch != 4:
            return
        if what == "exception":
            raise KeyError("on purpose")
        if what == "exit":
            sys.exit(0)
        if what == "exit 3":
            sys.exit(3)
        if what == "os._exit":
            os._exit(0)
        if what == "os._exit 3":
            os._exit(3)
        if what == "caught":
            raise KeyError("on purpose")
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if what == "slow":
            time.sleep(1000)

    if what == "nan":
        x[20:22] = np.nan  # with 8 samples in a batch and 2 ranks: rank 1's share of the third batch
    samples = 63 if what == "data" and here else 64
    model = model_of(5 if what == "model" and here else 4)
    if what == "astray" and here:
        model.evaluate(x, y, batch_size=8, verbose=0)
    if what == "return" and here:
        return
    if what == "alone":
        model.predict_on_batch(x)
        if here:
            model.predict_on_batch(x[:4])

    def on_epoch_end(epoch, logs):
        if here and what == "rate":
            model.optimizer.learning_rate = 0.5
        if here and what == "weights":
            model.layers[1].kernel.assign(model.layers[1].kernel * 1.5)

    if what in ("evaluate", "predict"):
        try:
            getattr(model, what)(
                x, batch_size=8, callbacks=[Refusing(here)], **({"y": y} if what == "evaluate" else {})
            )
        except KeyError:
            time.sleep(1000)
    try:
        callbacks = [LambdaCallback(on_train_batch_begin=on_train_batch_begin, on_epoch_end=on_epoch_end)]
        model.fit(x[:samples], y[:samples], 8, 2, 0, callbacks, shuffle=False)
    except KeyError:
        if what != "caught":
            raise
        time.sleep(1000)
    if what == "leave together":
        print("leaves", flush=True)
        time.sleep(0.5 * here)
        os._exit(0)
    print("not reached", flush=True)
