"""`keras.ops.image`: functions of images."""

from pydtconv.ops.functions.tables.image import *  # noqa: F403
from pydtconv.ops.functions.tables.image import __all__ as __all__
from pydtconv.suggest import refusal

__getattr__ = refusal(__name__, __all__)
