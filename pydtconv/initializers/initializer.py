"""`Initializer`: a callable that makes the first values of a weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.hooks import Returning
from pydtconv.serialization.objects import arguments_of

Shape = Sequence[int]


class Initializer(Returning):
    """Base of all initializers."""

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        """An array of this shape; dtype defaults to config.floatx()."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__(shape, dtype=None)")

    def get_config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        return cls(**arguments_of(config))

    def clone(self) -> Initializer:
        return type(self).from_config(self.get_config())
