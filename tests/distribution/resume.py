"""A training on several ranks that is interrupted: `resume FOLDER RESULT SAVE_FREQ [RANK EPOCH BATCH]`.

Rank RANK kills itself after that step; where BATCH is "end", it is sent SIGTERM at the end of that epoch.  All rest for
PAUSE seconds after each step.  Each rank writes RESULT.rank.npz at the end.
"""

import os
import signal
import time
from functools import partial

from pydtconv import config, distribution, replica
from tests.checkpoints import training


class Killed(training.Told):
    """Kills this rank in the midst of training."""

    where = ()

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        time.sleep(float(os.environ.get("PAUSE", 0)))
        self.end_at(batch, signal.SIGKILL)

    def on_epoch_end(self, epoch, logs=None):
        self.end_at("end", signal.SIGTERM)

    def end_at(self, place, number):
        if [str(word) for word in (replica.current().rank, self.epoch, place)] == list(self.where):
            os.kill(os.getpid(), number)


def main(folder, result, save_freq, *where):
    Killed.where = where
    distribution.initialize()
    distribution.set_distribution(distribution.DataParallel())
    # what any number of ranks computes alike, but for rounding
    config.set_floatx("float64")
    training.layers.BatchNormalization = partial(training.layers.BatchNormalization, synchronized=True)
    training.Told = Killed
    rank = replica.current().rank
    training.main(folder, f"{result}.{rank}.npz", "arrays", save_freq)
