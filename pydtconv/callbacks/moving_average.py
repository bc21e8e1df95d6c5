"""Evaluation by the moving averages of the weights."""

from __future__ import annotations

from typing import Any

from pydtconv.callbacks.callback import Callback, Logs


class SwapEMAWeights(Callback):
    """Exchanges the weights and their moving averages before evaluate and predict, and back after them.

    The optimizer must have use_ema=True.  swap_on_epoch: the averages are also in the model from the end of an epoch to
    the beginning of the next, for callbacks behind this one (`ModelCheckpoint`), and stay there after the last.
    """

    steers = True
    state_names = ("swapped",)

    def __init__(self, swap_on_epoch: bool = False) -> None:
        super().__init__()
        self.swap_on_epoch = swap_on_epoch
        #: whether the model has the averages, and the optimizer the weights
        self.swapped = False

    def _averages(self) -> list[tuple[Any, Any]]:
        """(variable, its moving average) of all that the optimizer trains."""
        optimizer = getattr(self.model, "optimizer", None)
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        if not getattr(optimizer, "use_ema", False):
            raise ValueError(
                f"SwapEMAWeights: expected a model compiled with an optimizer that has use_ema=True, got {optimizer!r}"
            )
        return optimizer.averages()  # type: ignore

    def _swap(self) -> None:
        for variable, average in self._averages():
            value = variable.numpy().copy()
            variable.assign(average.array)
            average.assign(value)
        self.swapped = not self.swapped

    def _put(self, swapped: bool) -> None:
        if self.swapped is not swapped:
            self._swap()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        self._put(False)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if self.swap_on_epoch:
            self._put(True)

    def settle(self) -> None:
        """Leaves the averages in the model: fit replaces the weights by the optimizer's at its end."""
        if self.swapped:
            for variable, average in self._averages():
                average.assign(variable.array)
            self.swapped = False

    def release(self) -> None:
        """Puts the weights back where an exception has ended a run between two swaps."""
        self._put(False)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._put(True)

    def on_test_end(self, logs: Logs | None = None) -> None:
        self._put(False)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._put(True)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._put(False)
