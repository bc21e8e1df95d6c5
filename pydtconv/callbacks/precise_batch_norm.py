"""Statistics of batch normalization that are found anew for evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.support import random


class PreciseBatchNorm(Callback):
    """Finds the moving statistics of batch normalization anew, before evaluate (in fit, too) and at the end of fit.

    The moving mean and variance of each layer become the means of those that it has in some batches which the network
    computes in training mode, forward alone and not split into patches.  Trained weights stay as they are.  So a
    network that is trained in patches (`Split`) is evaluated by the statistics of whole images instead of those of
    patches.  (Y. Wu, J. Johnson, "Rethinking 'Batch' in BatchNorm", 2021, section 3.)

    x: an array of inputs (n, ...), or a sequence of batches, each the inputs or a tuple that begins with them.
    batch_size: of an array's batches.  batches: how many are computed, drawn without replacement, the same each time;
    all where there are fewer.  Processes that train together must give the same.

    Raises TypeError for an x that is neither, ValueError for an empty one and for sizes below 1.
    """

    steers = True

    def __init__(self, x: Any, batch_size: int = 32, batches: int = 40) -> None:
        super().__init__()
        for name, value in (("batch_size", batch_size), ("batches", batches)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"PreciseBatchNorm: {name}: expected an integer of 1 or more, got {value!r}")
        if not hasattr(x, "__len__") or not hasattr(x, "__getitem__") or isinstance(x, (str, dict)):
            words = "expected an array or a sequence of batches"
            raise TypeError(f"PreciseBatchNorm: x: {words}, got {type(x).__name__}")
        if not len(x):
            raise ValueError("PreciseBatchNorm: x: expected at least one sample or batch, got none")
        self._x = x
        self.batch_size = int(batch_size)
        self.batches = int(batches)

    def _batches(self) -> Iterator[np.ndarray]:
        draw = np.random.default_rng(0)
        if hasattr(self._x, "shape"):
            drawn = draw.permutation(len(self._x))[: self.batches * self.batch_size]
            for first in range(0, len(drawn), self.batch_size):
                yield np.asarray(self._x[np.sort(drawn[first : first + self.batch_size])])
        else:
            for number in draw.permutation(len(self._x))[: self.batches].tolist():
                batch = self._x[number]
                yield np.asarray(batch[0] if isinstance(batch, (tuple, list)) else batch)

    def _layers(self) -> list[Any]:
        """The layers that have moving statistics which can move."""
        every = self.model._pydt_flatten_layers()
        return [
            layer
            for layer in every
            if hasattr(layer, "moving_variance") and layer.trainable and 0 <= layer.momentum < 1
        ]

    def refresh(self) -> None:
        """Finds the statistics anew now."""
        layers = self._layers()
        moving = [variable for layer in layers for variable in (layer.moving_mean, layer.moving_variance)]
        momenta = [layer.momentum for layer in layers for _ in range(2)]
        if not layers:
            return
        sums = [np.zeros(variable.shape) for variable in moving]
        state = random.get_state()  # training goes on as it would have without
        try:
            for count, batch in enumerate(self._batches(), start=1):
                before = [np.array(variable.numpy(), np.float64) for variable in moving]
                self.model(self._as_input(batch), training=True)
                for total, variable, old, momentum in zip(sums, moving, before, momenta, strict=True):
                    total += (variable.numpy() - momentum * old) / (1 - momentum)
                    variable.assign(total / count)
        finally:
            random.set_state(state)

    def _as_input(self, batch: np.ndarray) -> np.ndarray:
        inputs = getattr(self.model, "inputs", None)
        return batch.astype(inputs[0].dtype, copy=False) if inputs else batch

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self.refresh()

    def on_train_end(self, logs: Logs | None = None) -> None:
        self.refresh()
