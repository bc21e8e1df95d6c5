"""Checkpoints of training: one file holds everything that a run needs to go on as if it had not been broken off."""

from pydtconv.checkpoints.files import CheckpointError, read_checkpoint, write_checkpoint
from pydtconv.checkpoints.folder import Checkpoints
from pydtconv.checkpoints.state import MismatchError, restore_training, training_state

__all__ = [
    "CheckpointError",
    "Checkpoints",
    "MismatchError",
    "read_checkpoint",
    "restore_training",
    "training_state",
    "write_checkpoint",
]
