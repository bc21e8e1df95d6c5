"""`tf.experimental.numpy`: NumPy's functions, on arrays and on what is recorded."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv import random as random_module
from pydtconv.compat.tensorflow.arrays import Array, array
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable

#: names of NumPy of before version 2, which TensorFlow keeps
_OLD = {
    "float_": np.float64, "int_": np.int64, "complex_": np.complex128, "bool_": np.bool_, "string_": np.bytes_,
    "unicode_": np.str_, "object_": np.object_, "ndarray": Array,
}  # fmt: skip


def _is_recorded(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_is_recorded, x))
    return isinstance(x, (Tensor, Variable)) or hasattr(x, "apply_op")


def _result(found: Any) -> Any:
    if isinstance(found, (list, tuple)):
        return type(found)(map(_result, found))
    return array(found) if isinstance(found, (np.ndarray, np.generic)) else found


def _function(name: str) -> Any:
    """NumPy's function; of the same name of `ops` where an argument is recorded."""
    plain, recorded = getattr(np, name), getattr(ops, name, None)

    @functools.wraps(plain, updated=())
    def function(*args: Any, **kwargs: Any) -> Any:
        if any(map(_is_recorded, (*args, *kwargs.values()))):
            if recorded is None:
                raise NotImplementedError(f"tf.experimental.numpy.{name}: expected arrays, got tensors of traced code")
            return recorded(*args, **kwargs)
        return _result(plain(*args, **kwargs))

    return function


class Names(Mapping[str, Any]):
    """The names of NumPy that TensorFlow has, made when they are asked for."""

    def __init__(self) -> None:
        self._names = sorted(
            {*(n for n in dir(np) if not n.startswith("_")), *_OLD, *_own()} - {"test", "ma", "ctypeslib"}
        )

    def __getitem__(self, name: str) -> Any:
        if name in _own():
            return _own()[name]
        if name in _OLD or name not in self._names:
            return _OLD[name]
        found = getattr(np, name)
        return _function(name) if callable(found) and not isinstance(found, type) else found

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _own() -> dict[str, Any]:
    return {"experimental_enable_numpy_behavior": _nothing, "random": Random, "linalg": np.linalg, "fft": np.fft}


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What means nothing here."""


class Random:
    """`tf.experimental.numpy.random`."""

    @staticmethod
    def seed(s: int) -> None:
        """The seed of all that is drawn."""
        from pydtconv.support.random import set_random_seed

        set_random_seed(int(s))

    @staticmethod
    def randn(*args: int) -> Any:
        return array(random_module.normal(args), "float64")

    @staticmethod
    def standard_normal(size: Any = ()) -> Any:
        return Random.randn(*np.atleast_1d(np.asarray(size, int)).tolist())

    @staticmethod
    def uniform(low: float = 0.0, high: float = 1.0, size: Any = ()) -> Any:
        return array(random_module.uniform(tuple(np.atleast_1d(np.asarray(size, int))), low, high), "float64")

    @staticmethod
    def random(size: Any = ()) -> Any:
        return Random.uniform(size=size)

    @staticmethod
    def rand(*size: int) -> Any:
        return Random.uniform(size=size)

    @staticmethod
    def randint(low: int, high: int | None = None, size: Any = (), dtype: Any = "int64") -> Any:
        low, high = (0, low) if high is None else (low, high)
        return array(random_module.randint(tuple(np.atleast_1d(np.asarray(size, int))), low, high), dtype)

    @staticmethod
    def poisson(lam: Any = 1.0, size: Any = ()) -> Any:
        from pydtconv.support.random import next_seed

        return array(np.random.default_rng(next_seed()).poisson(lam, tuple(np.atleast_1d(np.asarray(size, int)))))
