"""Progress on the terminal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.support.messages import tell
from pydtconv.support.progress import Progbar


class ProgbarLogger(Callback):
    """A bar over each epoch's steps with the results so far, by `utils.Progbar`; validation within fit shows none."""

    state_names = ("target",)

    main_only = True

    def __init__(self) -> None:
        super().__init__()
        self._bar: Progbar | None = None
        self._seen = 0
        self._fitting = self._said = False
        self.verbose = 1
        self.epochs = 1
        self.target: int | None = None

    def set_params(self, params: dict[str, Any]) -> None:
        super().set_params(params)
        verbose = params.get("verbose", "auto")
        if verbose != "auto" and not isinstance(verbose, (int, np.integer)):
            raise ValueError(f"verbose: expected 'auto', 0, 1 or 2, got {verbose!r}")
        self.verbose = 1 if verbose == "auto" else int(verbose)
        self.epochs = params.get("epochs") or 1
        self.target = params.get("steps")

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._fitting, self._said = True, False

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._fitting = False

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        if self.verbose and self.epochs > 1:
            tell(f"Epoch {epoch + 1}/{self.epochs}")
        self._start()

    def on_test_begin(self, logs: Logs | None = None) -> None:
        if not self._fitting:
            self._start()

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        self._start()

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._update(batch, logs)

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if not self._fitting:
            self._update(batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        self._update(batch, None)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._finish(logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        if not self._fitting:
            self._finish(logs)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        self._finish(None)

    def release(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _start(self) -> None:
        self._seen = 0
        self._bar = Progbar(self.target, verbose=self.verbose, unit_name="step")

    def _update(self, batch: int, logs: Logs | None) -> None:
        self._seen = batch + 1 if self.target is None else min(batch + 1, self.target)
        if self._bar is not None and self.verbose == 1:
            self._bar.stateful_metrics.update(logs or {})
            self._bar.update(self._seen, _numbers(logs), finalize=False)

    def _finish(self, logs: Logs | None) -> None:
        if self._bar is None:
            return
        self._bar.stateful_metrics.update(logs or {})
        numbers = _numbers(logs)
        finite = all(math.isfinite(value) for name, value in numbers if "loss" in name)
        if self._fitting and not finite and not self._said:
            self._said = True
            position = getattr(self.model, "_pydt_position", None)
            bad = "" if position is None else position.batches.data.not_finite()
            hint = "TerminateOnNaN(find_layer=True), or --debug-nan, names the first step and layer"
            self._bar.note = f"not finite: {bad or hint}"
        self._bar.update(self._seen, numbers, finalize=True)
        if self.target is None:
            self.target = self._seen
        self._bar = None


def _numbers(logs: Logs | None) -> list[tuple[str, float]]:
    """The results as single numbers; those of several (one for each class) by their mean."""
    pairs = []
    for name, value in (logs or {}).items():
        mean = getattr(value, "mean", None)
        pairs.append((name, float(mean() if callable(mean) else value)))
    return pairs
