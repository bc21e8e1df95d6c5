"""Where a restored `fit` goes on; whole runs that are interrupted are in tests/callbacks/test_backup.py."""

import pydtconv
from tests.trainers.small_models import XS, YS, line


def test_validation_of_some_batches_may_change_between_resumed_runs(tmp_path):
    for epochs, size in ((1, 5), (2, 2)):
        backup = pydtconv.callbacks.BackupAndRestore(tmp_path, delete_checkpoint=False)
        found = line().fit(
            *(XS[:, None], YS[:, None]),
            epochs=epochs,
            validation_data=(XS[:, None], YS[:, None]),
            validation_steps=2,
            validation_batch_size=size,
            callbacks=[backup],
            verbose=0,
        )
    assert len(found.history["val_loss"]) == 2
