"""The few names of tensorflow, apart from `tensorflow.keras`, that Keras scripts use: seeds, dtypes, functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv._version import __version__
from pydtconv.utils.random import next_seed, set_random_seed

#: functions of tensorflow that are functions of pydtconv.ops: tensorflow's name (without `tf.`) -> ours
_OPS = {
    "abs": "abs",
    "add": "add",
    "concat": "concatenate",
    "divide": "divide",
    "exp": "exp",
    "matmul": "matmul",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "multiply",
    "reduce_max": "max",
    "reduce_mean": "mean",
    "reduce_min": "min",
    "reduce_sum": "sum",
    "reshape": "reshape",
    "sigmoid": "sigmoid",
    "sqrt": "sqrt",
    "square": "square",
    "subtract": "subtract",
    "tanh": "tanh",
    "transpose": "transpose",
}
_NN = ("elu", "gelu", "leaky_relu", "relu", "relu6", "selu", "sigmoid", "silu", "softmax", "tanh")
_MATH = {**_OPS, "log": "log"}
_DTYPES = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
_MODULES: dict[str, tuple[str, ...]] = {"tensorflow": ("keras", "random", "nn", "math", "config")}


def submodules(fullname: str) -> tuple[str, ...]:
    """The modules in one of tensorflow's."""
    return _MODULES.get(fullname, ())


def table(fullname: str) -> dict[str, Any]:
    """The names in one of tensorflow's modules, apart from its submodules."""
    return {
        "tensorflow": _top,
        "tensorflow.random": _random,
        "tensorflow.nn": lambda: _from_ops({name: name for name in _NN}),
        "tensorflow.math": lambda: _from_ops(_MATH),
        "tensorflow.config": _config,
    }[fullname]()


def _from_ops(names: dict[str, str]) -> dict[str, Any]:
    from pydtconv import ops

    return {name: getattr(ops, ours) for name, ours in names.items() if hasattr(ops, ours)}


def _top() -> dict[str, Any]:
    return {
        "__version__": f"2.16.0+pydtconv.{__version__}",
        "cast": lambda x, dtype: np.asarray(x).astype(dtype),
        "constant": lambda value, dtype=None, shape=None: np.asarray(value, dtype).reshape(shape or np.shape(value)),
        "convert_to_tensor": lambda value, dtype=None: np.asarray(value, dtype),
        "expand_dims": lambda x, axis: np.expand_dims(x, axis),
        "one_hot": _one_hot,
        **{name: name for name in _DTYPES},
        **_from_ops(_OPS),
    }


def _one_hot(indices: Any, depth: int) -> np.ndarray:
    from pydtconv.utils import to_categorical

    return to_categorical(indices, depth)


def _random() -> dict[str, Any]:
    def normal(
        shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: str = "float32", seed: int | None = None
    ) -> Any:
        return _generator(seed).normal(mean, stddev, shape).astype(dtype)

    def uniform(shape: Any, minval: float = 0, maxval: float = 1, dtype: str = "float32", seed: Any = None) -> Any:
        generator = _generator(seed)
        if np.issubdtype(np.dtype(dtype), np.integer):
            return generator.integers(int(minval), int(maxval), shape, dtype=dtype)
        return generator.uniform(minval, maxval, shape).astype(dtype)

    return {"set_seed": set_random_seed, "normal": normal, "uniform": uniform}


def _generator(seed: int | None) -> np.random.Generator:
    return np.random.default_rng(next_seed() if seed is None else seed)


def _config() -> dict[str, Any]:
    def list_physical_devices(device_type: str | None = None) -> list[str]:
        """The CPU is the only device."""
        return ["/physical_device:CPU:0"] if device_type in (None, "CPU") else []

    return {"list_physical_devices": list_physical_devices}
