"""What is not known while code is traced: results of metrics, and updates of them that come behind the operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


class ValueNeededError(TypeError):
    """Python code asked for the value of a tensor while it is traced, when there is none."""


class Deferred:
    """What a metric will give when the code runs.  There is no value while it is traced: all that asks for one raises
    ValueNeededError, and comparisons, which Python would answer by identity, are among it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = None

    def _ask(self, *_: Any, **__: Any) -> Any:
        raise ValueNeededError(f"{self.name} is not known while it is traced")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.name}, not known yet>"


class Known(np.float64):
    """What a metric has given where code runs as it is written: a float, with what tensors have."""

    def numpy(self) -> np.float32:
        """The number, as an array of no axes has it."""
        return np.float32(self)


def _refuse_all_of_numbers() -> None:
    """Gives Deferred the operators and the public names that numbers and arrays have."""
    kinds = (int, float, complex, np.float32, np.ndarray)
    special = {name for kind in kinds for name in dir(kind) if name.startswith("__") and not hasattr(object, name)}
    compared = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__format__"}
    arrays = {name for name in special if name.startswith("__array_") or name in ("__getnewargs__", "__setstate__")}
    for name in (special - arrays) | compared | {"__array__"}:
        setattr(Deferred, name, Deferred._ask)
    for name in {name for kind in kinds for name in dir(kind) if not name.startswith("_")} | {"numpy"}:
        setattr(Deferred, name, property(Deferred._ask))


_refuse_all_of_numbers()


@dataclass(eq=False)
class MetricUpdate:
    """A call of a metric's method in what is traced, such as `update_state` in `compute_loss` or in a layer's call."""

    metric: Any
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
