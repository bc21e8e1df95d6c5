"""Who gathers the metrics of a model: runs over data that take turns, each of which finds its own state again."""

from __future__ import annotations

import copy
from typing import Any


class Gathering:
    """A run over data, such as an epoch of `fit` or an `evaluate`, whose results are gathered in the model's metrics.

    There is one set of metrics.  Where another run comes in between, in a callback or in another thread, the state of
    the one that is not done is kept, and put back when that goes on.  To be used while the thread has the model's turn.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._kept: list[tuple[Any, Any]] | None = None

    def begin(self) -> None:
        """Starts anew, with metrics that are set back."""
        self._make_room()
        self._kept = None
        self._model.reset_metrics()
        self._model._pydt_set("_pydt_gathering", self)

    def resume(self) -> None:
        """Goes on where this run stood."""
        if self._model._pydt_gathering is self:
            return
        self._make_room()
        for metric, state in self._kept or ():
            metric.set_state(copy.deepcopy(state))
        if self._kept is not None:
            known = {id(metric) for metric, _ in self._kept}
            for metric in self._model._pydt_kept_metrics:
                if id(metric) not in known:  # the run that came in between has made it
                    metric.reset_state()
        self._model._pydt_set("_pydt_gathering", self)

    def end(self) -> None:
        """Leaves the metrics to whoever comes next; until then they show the results of this run."""
        if self._model._pydt_gathering is self:
            self._model._pydt_set("_pydt_gathering", None)

    def _make_room(self) -> None:
        other = self._model._pydt_gathering
        if other is not None and other is not self:
            other._kept = [(metric, copy.deepcopy(metric.get_state())) for metric in self._model._pydt_kept_metrics]
