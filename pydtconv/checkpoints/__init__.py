"""Checkpoints of training: one file holds everything that a run needs to go on as if it had not been interrupted."""

from pydtconv.checkpoints.files import CheckpointError, read_checkpoint, write_checkpoint
from pydtconv.checkpoints.folder import Checkpoints
from pydtconv.checkpoints.state import MismatchError, check_state, restore_training, training_state

__all__ = [
    "CheckpointError",
    "Checkpoints",
    "MismatchError",
    "check_state",
    "read_checkpoint",
    "restore_training",
    "training_state",
    "write_checkpoint",
]
