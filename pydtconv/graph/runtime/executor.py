"""Runs plans: binds each step to arrays once, then calls them one after the other and allocates nothing."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import real
from pydtconv.graph.compiler import build_plan
from pydtconv.graph.ir.graph import Graph, Tensor
from pydtconv.graph.plan import Plan
from pydtconv.graph.runtime.binder import Binder, Updater
from pydtconv.graph.runtime.hooks import Hooks
from pydtconv.graph.runtime.kept import Kept, key_of, variables_of
from pydtconv.graph.runtime.labels import Labels
from pydtconv.graph.runtime.memory import Memory
from pydtconv.graph.runtime.rows import copy_samples
from pydtconv.graph.runtime.scratch_file import TransferError
from pydtconv.graph.runtime.undo import Undo
from pydtconv.hooks import as_result
from pydtconv.kernels.base import Call, RunState
from pydtconv.ops.base import spec_of
from pydtconv.support.random import next_seed

#: first runs of a plan with offload whose steps are timed; two, where one takes LONG seconds or more
TIMED, LONG = 4, 1.0


class Executor:
    """A plan bound to memory.  hooks: called while this plan runs.

    updater: applies the gradients of a plan with `applies_gradients`.  Where such a run is interrupted by an exception,
    some variables have taken the step, the others and the count of iterations have not.
    """

    def __init__(self, plan: Plan, memory: Memory, updater: Updater | None = None) -> None:
        if plan.applies_gradients and updater is None:
            raise ValueError("updater: expected an optimizer, for the plan applies gradients; got None")
        self.plan = plan
        self.memory = memory
        self.updater = updater if plan.applies_gradients else None
        self.hooks: Hooks | None = None
        self._timings: list[list[float]] = []
        self.reserve()
        memory.reserve(plan.arena_bytes)
        if plan.gradient_order:
            memory.make_store(plan.gradient_order)
        self._generation = -1
        self._calls: list[Call] = []
        self._waits: list[Call] = []
        self._undo = None if plan.offloaded is None or not memory.device.is_host else Undo(plan)
        self._launcher: Any = None
        self._captured: dict[Hashable, Call | None] = {}  # by the kernels of a step
        self._labels = Labels(plan.graph)
        self._inputs: dict[str, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray] = {}

    @property
    def state(self) -> RunState:
        return self.memory.state

    def reserve(self) -> None:
        """Reserves the scratch file of a plan with offload.  Raises OSError where that cannot be."""
        found = self.plan.offloaded
        if found is not None and found.scratch_bytes:
            if found.folder is None:
                raise ValueError("offload: expected a folder for a plan that runs, got True")
            self.memory.use_scratch_file(found.folder, found.scratch_bytes)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Runs all steps, on the threads of the plan.  Returns the outputs by name: views, valid until the memory is
        used again.

        Raises ValueError when an input is missing, unknown or of another shape than planned; nothing has run then.
        """
        with config.hold_num_threads(self.plan.threads):
            return self._run(inputs)

    def _run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        if self.plan.offloaded is not None:
            self.reserve()
        if self._generation != self.memory.generation:
            self.memory.reserve(self.plan.arena_bytes)
            self._bind()
        self._check(inputs)
        for name, value in inputs.items():
            self._feed(name, value)
        if self.updater is not None and self.memory.store is not None:
            self.updater.begin(self.memory.store)
        self.memory.take_variables()
        variant: Hashable = None
        if self._launcher is not None:
            self._launcher.refresh()
            variant = self._launcher.variant
        captured = self._captured.get(variant)
        hooks = [*(() if self.hooks is None else (self.hooks,)), *self.memory.hooks]
        undo = self._undo
        if undo is not None:
            undo.begin()
        try:
            if hooks:
                self._run_with_hooks(hooks, undo)
            elif undo is not None:
                self._run_timed(undo)
            elif captured is not None:
                captured()
            else:
                for call in self._calls:
                    call()
                if self.memory.device.captures and variant not in self._captured:
                    self._captured[variant] = self.memory.device.capture(self._calls)
        except BaseException as error:
            for wait in self._waits:  # nothing may go on in memory that is used again
                with contextlib.suppress(Exception):  # the first error is the one that is told
                    wait()
            if undo is not None and isinstance(error, TransferError):
                error.undone = undo.done()
            raise
        if self.updater is not None:
            self.updater.end()
        if self.plan.graph.training:
            self.state.step += 1
        return self.memory.device.results(self._outputs)

    def _feed(self, name: str, value: Any) -> None:
        """Copies the value of an input to where it lies, in its dtype."""
        graph, target = self.plan.graph, self._inputs[name]
        if self._launcher is not None:
            self._labels.check(name, value)
            self.memory.device.put(target, np.ascontiguousarray(value, target.dtype))
        else:
            copy_samples(value, target, graph.inputs[name].dtype)

    def _check(self, inputs: Mapping[str, Any]) -> None:
        missing = [name for name in self._inputs if name not in inputs]
        unknown = [name for name in inputs if name not in self._inputs]
        if missing or unknown:
            raise ValueError(f"inputs: expected {list(self._inputs)}, got {list(inputs)}")
        for name, value in inputs.items():
            if np.shape(value) != self._inputs[name].shape:
                raise ValueError(f"input {name!r}: expected shape {self._inputs[name].shape}, got {np.shape(value)}")

    def _run_with_hooks(self, hooks: Sequence[Hooks], undo: Undo | None) -> None:
        store = self.memory.store
        for index, (call, step) in enumerate(zip(self._calls, self.plan.steps, strict=True)):
            for hook in hooks:
                hook.before(index, step)
            call()
            if undo is not None:
                undo.steps += 1
            for hook in reversed(hooks):
                hook.after(index, step)
            if store is not None:
                for tensor in step.ready:
                    assert tensor.variable is not None
                    for hook in hooks:
                        hook.gradient_ready(store.slice_of(tensor.variable))

    def _run_timed(self, undo: Undo) -> None:
        """A run of a plan with offload; the first ones note the seconds of each step, too."""
        if self._timed:
            for call in self._calls:
                call()
                undo.steps += 1
            return
        now = time.perf_counter
        found, last = [], now()
        for call in self._calls:
            call()
            undo.steps += 1
            found.append((stop := now()) - last)
            last = stop
        self._timings.append(found)

    @property
    def _timed(self) -> bool:
        """Whether enough runs have been timed."""
        done = len(self._timings)
        return done >= TIMED or (done >= 2 and sum(self._timings[-1]) >= LONG)

    @property
    def measured(self) -> list[float] | None:
        """Seconds of each step in the first runs of a plan with offload, without the very first; None before."""
        if not self._timed:
            return None
        return [statistics.median(values) for values in zip(*self._timings[1:], strict=True)]

    # -- binding ---------------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        graph = self.plan.graph
        binder = Binder(graph, self.memory, self.updater)
        self._launcher = binder.launcher
        self._captured = {}
        self._calls = [step.bind(binder) for step in self.plan.steps]
        self._waits = list(binder.waits.values())
        views = self.plan.views
        self._inputs = {name: binder.array(views[tensor]) for name, tensor in graph.inputs.items()}
        self._outputs = {name: binder.array(views[tensor]) for name, tensor in graph.outputs.items()}
        self._outputs |= {name: binder.array(view) for name, view in self.plan.gradient_views.items()}
        self._generation = self.memory.generation
        self.memory.attach(self)

    def unbind(self) -> None:
        """Lets go of all arrays; the next run binds anew."""
        self._generation = -1
        self._launcher, self._captured = None, {}
        self._calls, self._waits = [], []
        self._inputs, self._outputs = {}, {}


def run_once(fn: Callable[..., Any], arrays: Sequence[np.ndarray], training: bool = False) -> Any:
    """Traces fn on tensors shaped like the arrays and runs it; fn may return a tensor or nested lists, tuples, dicts.

    Returns arrays of its own in the same structure.  Calls of metrics in fn happen with the values.  Eager calls of
    layers and models come through here.
    """
    graph = Graph(training=training)
    graph.runs_once = True
    with graph:
        tensors = [graph.input(f"x{i}", spec_of(np.asarray(array))) for i, array in enumerate(arrays)]
        result = fn(*tensors)
    updates = list(graph.metric_updates)
    found: list[Tensor] = []
    _collect(result, found)
    _collect([(update.args, update.kwargs) for update in updates], found)
    found = [graph.cast(tensor, real(tensor.dtype)) for tensor in found]
    graph.outputs = {str(i): tensor for i, tensor in enumerate(found)}
    executor = Executor(_plan_of(graph), Memory())
    if any(node.op.draws for node in graph.nodes):  # those without a seed of their own draw others at each call
        executor.state.seed = next_seed()
    values = executor.run({f"x{i}": array for i, array in enumerate(arrays)})
    each = iter(as_result(values[str(i)].copy()) for i in range(len(found)))
    given = _rebuild(result, each)
    for update in updates:
        args, kwargs = _rebuild((update.args, update.kwargs), each)
        getattr(update.metric, update.method)(*args, **kwargs)
    return given


#: plans of calls on arrays
_PLANS = Kept(in_variables=True)


def _plan_of(graph: Graph) -> Plan:
    """The plan of a graph, or that of an earlier one which is like it."""
    key = key_of(graph)
    plan: Plan | None = _PLANS.get(key)
    return plan or _PLANS.put(key, build_plan(graph), variables_of(graph))


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
