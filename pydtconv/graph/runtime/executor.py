"""Runs plans: binds each step to arrays once, then calls them one after the other and allocates nothing."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from pydtconv.graph.ir.graph import Graph, Tensor
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.memory.storage import Storage, View
from pydtconv.graph.plan import Plan, build_plan
from pydtconv.graph.schedule.steps import LossGradient, ParameterGradient, Step
from pydtconv.kernels.base import BackwardReductions, Call, Pass, Prologue, RunState, scratch
from pydtconv.ops.base import spec_of


class Hooks(Protocol):
    """What may be watched from outside while a plan runs."""

    def before(self, index: int, step: Step) -> None: ...

    def after(self, index: int, step: Step) -> None: ...

    def gradient_ready(self, part: slice) -> None:
        """The gradients of this slice of the store's flat array are complete.

        They lie in `store.gradients`, or where the plan applies them itself are transient and just applied.
        """


class Updater(Protocol):
    """What applies gradients while backward runs: an optimizer."""

    def begin(self, store: ParameterStore) -> None: ...

    def apply_part(self, part: slice, gradients: np.ndarray | None = None) -> None: ...

    def end(self) -> None: ...


class Memory:
    """What the plans of one model share: the arena, the parameter store, the state of random operators, watchers.

    hooks: called by every plan, within those of an executor: after its `before` and before its `after`.
    keeps_gradients: set by whoever reads `store.gradients` after a step, or while it runs: steps that are planned from
    then on leave the gradients there, and the optimizer comes afterwards.
    """

    def __init__(self) -> None:
        self.arena = np.empty(0, np.uint8)
        self.store: ParameterStore | None = None
        self.state = RunState()
        self.hooks: list[Hooks] = []
        self.keeps_gradients = False
        self.generation = 0

    def reserve(self, nbytes: int) -> None:
        """Makes the arena at least this large; executors bind anew when it had to grow."""
        if nbytes > self.arena.nbytes:
            self.arena = np.empty(0, np.uint8)  # give the old one back first
            self.arena = scratch(nbytes)
            self.generation += 1

    def make_store(self, order: Sequence[Tensor], dtype: str) -> None:
        """Moves the variables into a flat store, if they are not all in the present one."""
        variables = [tensor.variable for tensor in order if tensor.variable is not None]
        if self.store is None or any(variable not in self.store for variable in variables):
            self.store = ParameterStore(variables, dtype)
            self.generation += 1
            _return_freed_memory()


def _return_freed_memory() -> None:
    """Gives the variables' former arrays back to the system, which glibc would keep; elsewhere nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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
        self._inputs: dict[str, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray] = {}

    @property
    def state(self) -> RunState:
        return self.memory.state

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Runs all steps.  Returns the outputs by name: views, valid until the memory is used again.

        Raises ValueError when an input is missing, unknown or of another shape than planned; nothing has run then.
        """
        if self._generation != self.memory.generation:
            self._bind()
        self._check(inputs)
        for name, value in inputs.items():
            np.copyto(self._inputs[name], value, casting="unsafe")
        if self.updater is not None and self.memory.store is not None:
            self.updater.begin(self.memory.store)
        hooks = [*(() if self.hooks is None else (self.hooks,)), *self.memory.hooks]
        if hooks:
            self._run_with_hooks(hooks)
        else:
            for call in self._calls:
                call()
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
        streams = {node: index for index, node in enumerate(graph.nodes)}
        self._calls = [self._bound(step, streams[step.node]) for step in self.plan.steps]
        homes = self.plan.homes
        self._inputs = {name: self._array(homes[tensor]) for name, tensor in graph.inputs.items()}
        self._outputs = {name: self._array(homes[tensor]) for name, tensor in graph.outputs.items()}
        self._generation = self.memory.generation

    def _bound(self, step: Step, stream: int) -> Call:
        if step.direction == "copy":
            return functools.partial(np.copyto, self._only(step.y), self._only(step.x))
        if step.direction == "add":
            total = self._only(step.y)
            return functools.partial(np.add, total, self._only(step.x), total)
        if step.direction == "update":
            return self._bound_update(step)
        kernel = step.node.kernel
        bind = getattr(kernel, step.direction)
        if step.rows is not None:
            bind = functools.partial(kernel.backward_rows, rows=step.rows)
        make = functools.partial(
            Pass,
            x=self._arrays(step.x),
            y=self._arrays(step.y),
            dy=self._arrays(step.dy),
            dx=self._arrays(step.dx),
            accumulate=step.accumulate,
            saved={key: self._array(view) for key, view in step.saved.items()},
            training=self.plan.graph.training,
            run=self.state,
            stream=stream,
            prologue=None if step.prologue is None else self._prologue(step.prologue),
            reductions=None if step.reductions is None else self._reductions(step.reductions),
            sums=None if step.sums is None else self._array(step.sums),
        )
        if step.transient_bytes:
            return lambda: bind(make(workspace=scratch(step.transient_bytes)))()
        return bind(make(workspace=None if step.workspace is None else self._array(step.workspace)))

    def _bound_update(self, step: Step) -> Call:
        (target,) = step.y
        assert target is not None
        assert self.memory.store is not None
        assert self.updater is not None
        part = self.memory.store.slice_of(target.home.variable)
        gradient = self._only(step.x).reshape(-1)
        if step.rows is not None:
            first = part.start + step.rows.start * (target.spec.size // (target.spec.shape[0] or 1))
            part = slice(first, first + gradient.size)
        return functools.partial(self.updater.apply_part, part, gradient)

    def _prologue(self, where: Prologue) -> Prologue:
        beta = None if where.beta is None else self._array(where.beta)
        return Prologue(self._array(where.mean), self._array(where.scale), beta, where.relu)

    def _reductions(self, where: BackwardReductions) -> BackwardReductions:
        return BackwardReductions(self._array(where.x), self._prologue(where.prologue), self._array(where.sums))

    def _arrays(self, views: Sequence[View | None]) -> list[np.ndarray | None]:
        return [None if view is None else self._array(view) for view in views]

    def _only(self, views: Sequence[View | None]) -> np.ndarray:
        (view,) = views
        assert view is not None
        return self._array(view)

    def _array(self, view: View) -> np.ndarray:
        home = view.home
        if isinstance(home, Storage):
            return view.array(self.memory.arena)
        if isinstance(home, LossGradient):
            return np.ones((), view.spec.dtype)
        if isinstance(home, ParameterGradient):
            assert self.memory.store is not None
            assert home.tensor.variable is not None
            return self.memory.store.gradient_of(home.tensor.variable)
        if home.constant is not None:
            return home.constant.reshape(view.spec.shape)
        return home.variable.value.reshape(view.spec.shape)


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
