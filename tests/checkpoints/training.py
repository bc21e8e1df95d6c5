"""A training that tests start as a process: `training.py FOLDER RESULT DATA [SAVE_FREQ [PAUSE_AT]]`.

It writes weights, optimizer's variables and history to RESULT; a line "step EPOCH BATCH" on stdout follows each step.
After the line PAUSE_AT it waits for a line on stdin.
"""

import sys
import time

import numpy as np

import pydtconv
from pydtconv import callbacks, layers, optimizers, utils


class Told(callbacks.Callback):
    """Says each step, and takes its time, so that signals meet training in its midst."""

    epoch = 0

    def __init__(self, pause_at=""):
        self.pause_at = pause_at

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        self._say(f"step {self.epoch} {batch}")

    def on_test_batch_end(self, batch, logs=None):
        self._say(f"test {self.epoch} {batch}")

    def _say(self, line):
        print(line, flush=True)
        if line == self.pause_at:
            sys.stdin.readline()
        time.sleep(0.01)


def network():
    inputs = layers.Input((8, 8, 3))
    x = layers.RandomFlip("horizontal")(layers.Rescaling(1 / 64)(inputs))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3)(x)))
    x = layers.Dropout(0.3)(layers.Flatten()(x))
    model = pydtconv.Model(inputs, layers.Dense(4, activation="softmax")(x))
    rate = optimizers.schedules.CosineDecay(0.05, 100)
    model.compile(optimizers.SGD(rate, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main(folder, result, data, save_freq="epoch", pause_at=""):
    utils.set_random_seed(5)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 255, (160, 8, 8, 3)).astype("float32"), rng.integers(0, 4, 160)
    if data == "arrays":
        arguments = {"x": x, "y": y, "batch_size": 10}
    else:
        options = {"image_size": (8, 8), "batch_size": 10, "verbose": False}
        arguments = {"x": utils.image_dataset_from_directory(data, **options)}
    backup = callbacks.BackupAndRestore(
        folder, save_freq=save_freq if save_freq == "epoch" else int(save_freq), delete_checkpoint=False
    )
    others = [callbacks.EarlyStopping("val_loss", patience=50, restore_best_weights=True), Told(pause_at)]
    model = network()
    history = model.fit(**arguments, validation_data=(x[:40], y[:40]), epochs=4, verbose=0, callbacks=[backup, *others])
    values = [variable.value for variable in [*model.variables, *model.optimizer.variables]]
    np.savez(result, *values, **{f"history_{name}": column for name, column in history.history.items()})
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
