"""What ends a training whose loss is not finite, and finds where that began."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.callbacks.monitor import say
from pydtconv.dtypes import BFLOAT16, from_bits
from pydtconv.graph.runtime.binder import Binder
from pydtconv.graph.schedule.steps import BackwardStep, PassStep, Step


class TerminateOnNaN(Callback):
    """Ends training when the loss of a batch is not finite; raise_error does so with a RuntimeError.

    find_layer: names the layer whose results were the first that are not finite, and its pass.  For that it looks at
    all results of all layers, which takes time.
    """

    steers = True

    def __init__(self, raise_error: bool = False, find_layer: bool = False) -> None:
        super().__init__()
        self.raise_error, self.find_layer = raise_error, find_layer
        self._memory: Any = None
        self._binder: Binder | None = None
        self._batch = 0
        self._first: str | None = None
        self._in_backward = False

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.release()
        if self.find_layer:
            self._first = None
            self._memory = self.model._pydt_training.memory
            self._memory.hooks.append(self)

    def release(self) -> None:
        if self._memory is not None:
            self._memory.hooks.remove(self)
            self._memory = self._binder = None

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._batch = batch

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is None or np.isfinite(loss):
            if (
                not self._in_backward
            ):  # a layer may mask with infinity; after such gradients the next loss is not finite
                self._first = None
            return
        where = f"; first not finite: {self._first}" if self._first else ""
        if self.raise_error:
            raise RuntimeError(f"batch {batch}: the loss is {loss}; training ends{where}")
        say(True, f"Batch {batch}: Invalid loss, terminating training{where}")
        self.model.stop_training = True

    # --- what plans tell it ----------------------------------------------------------------------------------------
    def before(self, index: int, step: Step) -> None:
        """Nothing is looked at before a step."""

    def after(self, index: int, step: Step) -> None:
        if self._first is not None or not isinstance(step, PassStep):
            return
        self._in_backward = isinstance(step, BackwardStep)
        results = step.dx if isinstance(step, BackwardStep) else step.y
        if all(self._is_finite(step, view) for view in results):
            return
        layer = step.node.scope or step.node.op.name
        text = f"layer {layer!r}, {step.of_pass} of batch {self._batch}"
        for view, tensor in zip(step.x, step.node.inputs, strict=False):
            if not self._is_finite(step, view):
                what = "a weight" if tensor.variable is not None else "its input"
                text += f", as {what} {tensor.name.split('#')[0]!r} is"
                break
        self._first = text

    def gradient_ready(self, part: slice) -> None:
        """Gradients are looked at as results of their steps."""

    def _is_finite(self, step: Step, view: Any) -> bool:
        if view is None:
            return True
        graph = step.node.outputs[0].graph
        if self._binder is None or self._binder.graph is not graph:
            self._binder = Binder(graph, self._memory, None)
        array = self._memory.device.results({"": self._binder.array(view)})[""]
        if view.spec.dtype == BFLOAT16:
            array = from_bits(array)
        return array.dtype.kind != "f" or bool(np.isfinite(array).all())
