"""The training that is disturbed: `training.py FOLDER SAVE_FREQ`, on one rank or under mpiexec.

It writes its number to FOLDER/pid.RANK, checkpoints to FOLDER/disk/saved, and at its end everything that it has learnt
to FOLDER/result.RANK.npz.  With a third argument, a number of seconds, it trains again and again instead, and writes
what it takes of the system to FOLDER/usage.RANK.
"""

import contextlib
import os
import sys
import time
from pathlib import Path

import numpy as np

import pydtconv as keras
from pydtconv import callbacks, distribution, layers, optimizers, replica, utils
from pydtconv.support.launcher import launched

EPOCHS, BATCH = 5, 12


class Slow(callbacks.Callback):
    """Steps take their time, so that what happens meets training in its midst."""

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.01)


class Broken(callbacks.Callback):
    """Ends fit within an epoch, on all ranks."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            raise InterruptedError


def network():
    inputs = layers.Input((8, 8, 3))
    x = layers.RandomFlip("horizontal")(layers.Rescaling(1 / 64)(inputs))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3)(x)))
    x = layers.Dropout(0.3)(layers.Flatten()(x))
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(x))
    rate = optimizers.schedules.CosineDecay(0.05, 100)
    model.compile(optimizers.SGD(rate, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def fit(folder, save_freq, others, model=None, delete=False):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 255, (160, 8, 8, 3)).astype("float32"), rng.integers(0, 4, 160)
    backup = callbacks.BackupAndRestore(folder / "disk" / "saved", save_freq=save_freq, delete_checkpoint=delete)
    listeners = [backup, callbacks.EarlyStopping("val_loss", patience=50, restore_best_weights=True), *others]
    model = model or network()
    options = {"validation_data": (x[:40], y[:40]), "verbose": 0, "callbacks": listeners}
    return model, model.fit(x, y, BATCH, EPOCHS, **options)


def usage():
    """(resident memory in KiB, open files, threads, files in shared memory)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    shared = len(list(Path("/dev/shm").iterdir()))
    return int(status["VmRSS"].split()[0]), len(os.listdir("/proc/self/fd")), int(status["Threads"]), shared


def again_and_again(folder, seconds, rank):
    """Fit, evaluate and predict, with checkpoints, to the end or interrupted, of a new model or of the same again."""
    end, kept = time.monotonic() + seconds, network()
    with (folder / f"usage.{rank}").open("w") as file:
        turn = 0
        # one clock for all ranks
        while replica.current().broadcast(time.monotonic() < end, "the time"):
            model = kept if turn % 2 else network()
            with contextlib.suppress(InterruptedError):
                fit(folder, 4, [Broken()] if turn % 3 == 2 else [], model, delete=turn % 3 != 2)
            model.predict(np.zeros((20, 8, 8, 3), "float32"), verbose=0)
            model.evaluate(np.zeros((20, 8, 8, 3), "float32"), np.zeros(20, int), verbose=0)
            print(*usage(), file=file, flush=True)
            turn += 1


def main(folder, save_freq, seconds=None):
    folder = Path(folder)
    if launched()[0] > 1:
        distribution.set_distribution(distribution.DataParallel())
    rank = replica.current().rank
    (folder / f"pid.{rank}").write_text(str(os.getpid()))
    utils.set_random_seed(5)
    if seconds is not None:
        again_and_again(folder, float(seconds), rank)
        return
    model, history = fit(folder, save_freq if save_freq == "epoch" else int(save_freq), [Slow()])
    values = [variable.value for variable in [*model.variables, *model.optimizer.variables]]
    np.savez(folder / f"result.{rank}.npz", *values, **{f"history_{k}": v for k, v in history.history.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
