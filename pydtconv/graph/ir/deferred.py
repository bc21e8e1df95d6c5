"""What is not known while code is traced: results of metrics, and updates of them that come behind the operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class ValueNeededError(TypeError):
    """Python code asked for the value of a tensor while it is traced, when there is none."""


class Deferred:
    """What a metric will give when the code runs; there is no value while it is traced."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = None

    def _ask(self, *_: Any) -> Any:
        raise ValueNeededError(f"{self.name} is not known while it is traced")

    __float__ = __int__ = __bool__ = __array__ = __len__ = __iter__ = __getitem__ = _ask
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __lt__ = __gt__ = __le__ = __ge__ = (
        _ask
    )

    def numpy(self) -> Any:
        return self._ask()

    def __format__(self, spec: str) -> str:
        return self._ask()

    def __repr__(self) -> str:
        return f"<{self.name}, not known yet>"


@dataclass(eq=False)
class MetricUpdate:
    """A call of a metric's method in what is traced, such as `update_state` in `compute_loss` or in a layer's call."""

    metric: Any
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
