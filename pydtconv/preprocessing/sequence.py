"""`keras.preprocessing.sequence`: rows of one length."""

from pydtconv.utils import pad_sequences
from pydtconv.utils.suggest import refusal

__all__ = ["pad_sequences"]

__getattr__ = refusal(__name__, __all__)
