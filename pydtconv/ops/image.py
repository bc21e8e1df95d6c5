"""`keras.ops.image`: functions of images."""

from pydtconv.ops.functions.result_types import of_all_dtypes
from pydtconv.ops.functions.tables.image import *  # noqa: F403
from pydtconv.ops.functions.tables.image import __all__ as __all__
from pydtconv.ops.operations import operations_of
from pydtconv.suggest import refusal

_given = of_all_dtypes({name: globals()[name] for name in __all__}, "ops.image")
globals().update(operations_of(_given, "ops.image"))

__getattr__ = refusal(__name__, __all__)
