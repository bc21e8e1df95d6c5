"""Runs plans: binds each step to arrays once, then calls them one after the other and allocates nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.graph.ir.graph import Graph, Tensor
from pydtconv.graph.plan import Plan, build_plan
from pydtconv.graph.runtime.binder import Binder, Updater
from pydtconv.graph.runtime.hooks import Hooks
from pydtconv.graph.runtime.memory import Memory
from pydtconv.kernels.base import Call, RunState
from pydtconv.ops.base import spec_of


class Executor:
    """A plan bound to memory.  hooks: called while this plan runs.

    updater: applies the gradients of a plan with `applies_gradients`.  Where such a run is broken off by an exception,
    some variables have taken the step, the others and the count of iterations have not.
    """

    def __init__(self, plan: Plan, memory: Memory, updater: Updater | None = None) -> None:
        if plan.applies_gradients and updater is None:
            raise ValueError("updater: expected an optimizer, for the plan applies gradients; got None")
        self.plan = plan
        self.memory = memory
        self.updater = updater if plan.applies_gradients else None
        self.hooks: Hooks | None = None
        memory.reserve(plan.arena_bytes)
        if plan.gradient_order:
            memory.make_store(plan.gradient_order, plan.gradient_order[0].dtype)
        self._generation = -1
        self._calls: list[Call] = []
        self._waits: list[Call] = []
        self._inputs: dict[str, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray] = {}

    @property
    def state(self) -> RunState:
        return self.memory.state

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Runs all steps, on the threads of the plan.  Returns the outputs by name: views, valid until the memory is
        used again.

        Raises ValueError when an input is missing, unknown or of another shape than planned; nothing has run then.
        """
        with config.hold_num_threads(self.plan.threads):
            return self._run(inputs)

    def _run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        if self._generation != self.memory.generation:
            self._bind()
        self._check(inputs)
        for name, value in inputs.items():
            np.copyto(self._inputs[name], value, casting="unsafe")
        if self.updater is not None and self.memory.store is not None:
            self.updater.begin(self.memory.store)
        hooks = [*(() if self.hooks is None else (self.hooks,)), *self.memory.hooks]
        try:
            if hooks:
                self._run_with_hooks(hooks)
            else:
                for call in self._calls:
                    call()
        except BaseException:
            for wait in self._waits:  # nothing may go on in memory that is used again
                wait()
            raise
        if self.updater is not None:
            self.updater.end()
        if self.plan.graph.training:
            self.state.step += 1
        return self._outputs

    def _check(self, inputs: Mapping[str, Any]) -> None:
        missing = [name for name in self._inputs if name not in inputs]
        unknown = [name for name in inputs if name not in self._inputs]
        if missing or unknown:
            raise ValueError(f"inputs: expected {list(self._inputs)}, got {list(inputs)}")
        for name, value in inputs.items():
            if np.shape(value) != self._inputs[name].shape:
                raise ValueError(f"input {name!r}: expected shape {self._inputs[name].shape}, got {np.shape(value)}")

    def _run_with_hooks(self, hooks: Sequence[Hooks]) -> None:
        store = self.memory.store
        for index, (call, step) in enumerate(zip(self._calls, self.plan.steps, strict=True)):
            for hook in hooks:
                hook.before(index, step)
            call()
            for hook in reversed(hooks):
                hook.after(index, step)
            if store is not None:
                for tensor in step.ready:
                    assert tensor.variable is not None
                    for hook in hooks:
                        hook.gradient_ready(store.slice_of(tensor.variable))

    # -- binding ---------------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        graph = self.plan.graph
        binder = Binder(graph, self.memory, self.updater)
        self._calls = [step.bind(binder) for step in self.plan.steps]
        self._waits = list(binder.waits.values())
        views = self.plan.views
        self._inputs = {name: binder.array(views[tensor]) for name, tensor in graph.inputs.items()}
        self._outputs = {name: binder.array(views[tensor]) for name, tensor in graph.outputs.items()}
        self._generation = self.memory.generation


def run_once(fn: Callable[..., Any], arrays: Sequence[np.ndarray], training: bool = False) -> Any:
    """Traces fn on tensors shaped like the arrays and runs it; fn may return a tensor or nested lists, tuples, dicts.

    Returns arrays of its own in the same structure.  Eager calls of layers and models come through here.
    """
    graph = Graph(training=training)
    with graph:
        tensors = [graph.input(f"x{i}", spec_of(np.asarray(array))) for i, array in enumerate(arrays)]
        result = fn(*tensors)
    found: list[Tensor] = []
    _collect(result, found)
    graph.outputs = {str(i): tensor for i, tensor in enumerate(found)}
    executor = Executor(build_plan(graph), Memory())
    values = executor.run({f"x{i}": array for i, array in enumerate(arrays)})
    return _rebuild(result, iter(values[str(i)].copy() for i in range(len(found))))


def _collect(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, Mapping):
        for item in value.values():
            _collect(item, found)


def _rebuild(value: Any, arrays: Any) -> Any:
    if isinstance(value, Tensor):
        return next(arrays)
    if isinstance(value, (list, tuple)):
        return type(value)(_rebuild(item, arrays) for item in value)
    if isinstance(value, Mapping):
        return {key: _rebuild(item, arrays) for key, item in value.items()}
    return value
