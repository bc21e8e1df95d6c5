"""`keras.preprocessing.sequence`: rows of one length."""

from pydtconv.suggest import refusal
from pydtconv.support.sequences import pad_sequences

__all__ = ["pad_sequences"]

__getattr__ = refusal(__name__, __all__)
