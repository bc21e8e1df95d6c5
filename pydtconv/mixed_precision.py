"""`keras.mixed_precision`'s names: the dtype policy of layers, and the optimizer that scales losses."""

from pydtconv.dtype_policies import DTypePolicy, dtype_policy, set_dtype_policy
from pydtconv.optimizers import LossScaleOptimizer
from pydtconv.suggest import refusal

Policy = DTypePolicy
global_policy = dtype_policy
set_global_policy = set_dtype_policy

__all__ = [
    "DTypePolicy",
    "LossScaleOptimizer",
    "Policy",
    "dtype_policy",
    "global_policy",
    "set_dtype_policy",
    "set_global_policy",
]

__getattr__ = refusal(__name__, __all__)
