"""Outputs of predict, put together batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import tree


class Predictions:
    """Arrays over all samples, written as the batches come; samples: how many, None where that is not known."""

    def __init__(self, samples: int | None) -> None:
        self.samples = samples
        self._structure: Any = None
        self._whole: list[np.ndarray] = []
        self._parts: list[list[np.ndarray]] = []
        self._done = 0

    def add(self, outputs: Any, size: int) -> Any:
        """Takes over a batch's outputs, views that will not stay; returns copies, or views of them, that do."""
        leaves = tree.flatten(outputs)
        if self._structure is None:
            self._structure = outputs
            self._parts = [[] for _ in leaves]
            if self.samples is not None:
                self._whole = [np.empty((self.samples, *leaf.shape[1:]), leaf.dtype) for leaf in leaves]
        if self.samples is not None and any(leaf.shape[:1] != (size,) for leaf in leaves):  # not one row a sample
            if self._done:
                self._parts = [[whole[: self._done]] for whole in self._whole]
            self.samples = None
        if self.samples is None:
            kept = [np.array(leaf, ndmin=1) for leaf in leaves]
            for parts, leaf in zip(self._parts, kept, strict=True):
                parts.append(leaf)
        else:
            kept = [whole[self._done : self._done + size] for whole in self._whole]
            for target, leaf in zip(kept, leaves, strict=True):
                target[...] = leaf
        self._done += size
        return tree.pack_sequence_as(outputs, kept)

    def result(self) -> Any:
        """All outputs so far, in the model's structure.  Raises ValueError where there are none."""
        if self._structure is None:
            raise ValueError("predict: expected at least one batch, got none")
        whole = [array[: self._done] for array in self._whole]
        if self.samples is None:
            whole = [parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in self._parts]
        return tree.pack_sequence_as(self._structure, whole)
