"""`Functional`: what `Model(inputs, outputs)` makes."""

from __future__ import annotations

from typing import Any

from pydtconv.models.model import Model


class Functional(Model):
    """A model of the recorded calls between symbolic inputs and outputs (single tensors, lists or dicts)."""

    @property
    def layers(self) -> list[Any]:
        assert self._network is not None
        return self._network.layers
