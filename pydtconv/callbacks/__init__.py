"""Callbacks with the names and arguments of `keras.callbacks`, and `PreciseBatchNorm`."""

from pydtconv.callbacks.backup import BackupAndRestore
from pydtconv.callbacks.callback import Callback
from pydtconv.callbacks.callback_list import CallbackList
from pydtconv.callbacks.checkpoint import ModelCheckpoint
from pydtconv.callbacks.early_stopping import EarlyStopping
from pydtconv.callbacks.history import CSVLogger, History
from pydtconv.callbacks.learning_rate import LearningRateScheduler, ReduceLROnPlateau
from pydtconv.callbacks.moving_average import SwapEMAWeights
from pydtconv.callbacks.precise_batch_norm import PreciseBatchNorm
from pydtconv.callbacks.progbar import ProgbarLogger
from pydtconv.callbacks.remote import RemoteMonitor
from pydtconv.callbacks.simple import LambdaCallback
from pydtconv.callbacks.tensorboard import TensorBoard
from pydtconv.callbacks.terminate_on_nan import TerminateOnNaN
from pydtconv.suggest import refusal

__all__ = [
    "BackupAndRestore",
    "CSVLogger",
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "PreciseBatchNorm",
    "ProgbarLogger",
    "ReduceLROnPlateau",
    "RemoteMonitor",
    "SwapEMAWeights",
    "TensorBoard",
    "TerminateOnNaN",
]

__getattr__ = refusal(__name__, __all__)
