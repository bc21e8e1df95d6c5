"""`Workspace`: where recordings run: one arena, one state of random operators, a store for each set of variables."""

from __future__ import annotations

import operator
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from pydtconv import config, devices
from pydtconv.dtypes import BFLOAT16, from_bits
from pydtconv.graph import Executor, Memory, Plan, Updates, build_plan
from pydtconv.graph.ir.graph import Graph, Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.loops.actions import Action, Apply, read
from pydtconv.loops.sharing import Sharing
from pydtconv.loops.stages import Part, key_of, parts_of
from pydtconv.utils import launcher
from pydtconv.utils.random import next_seed

#: plans of recordings that run at once, and memories of sets of variables
_KEPT = 64

#: what brings a variable's value back, where a device has it
_MIRROR = operator.attrgetter("mirror")
#: makes the plan of a graph
Planner = Callable[..., Plan]


class _Shared(Memory):
    """Memory with an arena that others have, too."""

    def __init__(self, workspace: Workspace) -> None:
        self._own_generation = 0
        self._workspace = workspace
        super().__init__(workspace.host.device)
        self.state = workspace.host.state

    @property
    def arena(self) -> np.ndarray:
        return self._workspace.host.arena

    @arena.setter
    def arena(self, array: np.ndarray) -> None:
        """The host's is the only one."""

    @property
    def scratch_file(self) -> Any:
        return self._workspace.host.scratch_file

    @scratch_file.setter
    def scratch_file(self, file: Any) -> None:
        if file is not None:
            self._workspace.host.scratch_file = file

    @property
    def generation(self) -> int:
        return self._own_generation + self._workspace.host.generation

    @generation.setter
    def generation(self, value: int) -> None:
        self._own_generation = value - self._workspace.host.generation

    def attach(self, bound: Any) -> None:
        self._workspace.host.attach(bound)

    def reserve(self, nbytes: int) -> None:
        self._workspace.host.reserve(nbytes)


class Bound:
    """A part of a stage with its executor, and the variables as they were when it was bound."""

    def __init__(self, part: Part, executor: Executor, memory: Memory) -> None:
        self.executor = executor
        self.memory = memory
        self.again = part.again
        self.inputs = list(part.inputs)
        self.outputs = list(part.outputs)
        self._bits = {name for name, tensor in part.outputs.items() if tensor.dtype == BFLOAT16}
        self.trained = [tensor.variable for tensor in executor.plan.gradient_order]
        self._variables = [t.variable for t in executor.plan.graph.parameters if t.variable is not None]
        self._arrays: list[np.ndarray] = []

    def run(self, arrays: Sequence[Any]) -> Mapping[str, np.ndarray]:
        """The results by name: views that are valid until the arena is used again; of bfloat16 the numbers."""
        self._check()
        found = self.executor.run(dict(zip(self.inputs, arrays, strict=True)))
        if not self._bits:
            return found
        return {name: from_bits(array) if name in self._bits else array for name, array in found.items()}

    def _check(self) -> None:
        """Binds anew where others have moved variables, and takes back those that are trained here."""
        if self.memory.device.is_host:
            for variable in filter(_MIRROR, self._variables):
                _ = variable.array  # which a device has
        if all(map(_is_array, self._variables, self._arrays)) and self._arrays:
            return
        store = self.memory.store
        if self.trained and store is not None and not store.holds_all:
            self.memory.move_to_store(store.variables)
        self.memory.generation += 1
        self._arrays = [variable.host_array for variable in self._variables]


def _is_array(variable: Variable, array: np.ndarray) -> bool:
    return variable.host_array is array


class _Kept:
    """What was made for keys; what was not used for longest goes first.

    What is of variables lies in one of them and goes with it: a model of which a tape took gradients is not kept here.
    """

    def __init__(self, in_variables: bool) -> None:
        self._in_variables = in_variables
        self._own: dict[Hashable, Any] = {}
        self._holders: OrderedDict[Hashable, Callable[[], Any]] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """What was made for the key, or None."""
        found = self._values(self._holders.get(key)).get(key)
        if found is not None:
            self._holders.move_to_end(key)
        return found

    def put(self, key: Hashable, value: Any, variables: Iterable[Variable]) -> Any:
        """Keeps the value, which is of these variables, and gives it back."""
        holder = next(iter(variables), None) if self._in_variables else None
        self._holders.pop(key, None)
        self._holders[key] = (lambda: self) if holder is None else weakref.ref(holder)
        self._values(self._holders[key])[key] = value
        if len(self._holders) > _KEPT:
            oldest, place = self._holders.popitem(last=False)
            self._values(place).pop(oldest, None)
        return value

    def _values(self, place: Callable[[], Any] | None) -> dict[Hashable, Any]:
        holder = None if place is None else place()
        if isinstance(holder, Variable):
            if holder.kept is None:
                holder.kept = {}
            return holder.kept
        return {} if holder is None else self._own


class Workspace:
    """host: the memory whose arena and random state are used.  plan: makes plans; as `build_plan`, by default."""

    _all: ClassVar[weakref.WeakSet[Workspace]] = weakref.WeakSet()

    def __init__(self, host: Memory | None = None, plan: Planner | None = None) -> None:
        given = host
        if host is None:
            host = Memory(devices.get(config.device()))
            host.state.seed = next_seed()
        self.of_model = given is not None
        self.host = host
        self.lock = threading.RLock()
        Workspace._all.add(self)
        #: those who run the same program on other shares of the batch; None where the batch is this process's alone
        self.sharing: Sharing | None = None
        self._plan = plan or build_plan
        self._memories, self._bound = (_Kept(in_variables=given is None) for _ in range(2))

    def next_step(self) -> int:
        """Counts a run of a recording; its number, which random operators draw by."""
        with self.lock:  # while another thread's part runs, the state has that one's number
            self.host.state.step += 1
            return self.host.state.step

    @classmethod
    def renew(cls) -> None:
        """Frees all locks, in a child process, but those of the thread that forked: the others do not exist there."""
        for workspace in list(cls._all):
            if not workspace.lock._is_owned():  # type: ignore[attr-defined]
                workspace.lock = threading.RLock()

    # --- parts ------------------------------------------------------------------------------------------------------
    def memory_of(self, variables: Sequence[Variable]) -> Memory:
        """The memory of a set of variables that are trained together."""
        key = frozenset(map(id, variables))
        return self._memories.get(key) or self._memories.put(key, _Shared(self), variables)

    def bind(self, part: Part, optimizer: Any = None) -> Bound:
        """The part's executor.  optimizer: that which takes the gradients of all its sources, as they come."""
        graph: Graph = part.graph
        trained = [tensor.variable for tensor in part.trained if tensor.variable is not None]
        slots, state_bytes, updates = 0, 0, None
        if optimizer is not None:
            slots, state_bytes = len(optimizer.all_slots()), optimizer.state_bytes(trained)
            if optimizer.works_in_parts and self.sharing is None:
                updates = Updates(by_rows=optimizer.works_in_rows)
        plan = self._plan(graph, slots=slots, state_bytes=state_bytes, updates=updates)
        memory = self.memory_of(trained)
        return Bound(part, Executor(plan, memory, optimizer if plan.applies_gradients else None), memory)

    def run(self, bound: Bound, arrays: Sequence[Any], step: int) -> Mapping[str, np.ndarray]:
        """One run of a part, with the random numbers of a step."""
        state = self.host.state
        now, state.step = state.step, step
        try:
            return bound.run(arrays)
        finally:
            state.step = now

    # --- recordings that run as they are recorded -------------------------------------------------------------------
    def run_stage(self, recording: Any, stage: int, wanted: list[Tensor], used: list[Tensor]) -> None:
        """Runs a stage of a recording and its actions; the values of what is wanted go to the recording."""
        with self.lock:
            values = recording.values
            ends = list(dict.fromkeys([*wanted, *used]))
            for part in parts_of(recording, stage, ends):
                bound = self._cached(part)
                recording.carried.update(part.inputs.values())
                arrays = [read(tensor, values) for tensor in part.inputs.values()]
                found = self.run(bound, arrays, recording.seed)
                for name, tensor in part.outputs.items():
                    values[tensor] = found[name].copy()
            for action in recording.actions[stage]:
                self.act(action, values)

    def _cached(self, part: Part) -> Bound:
        key = key_of(part, config.of_kernels())
        known = self._bound.get(key)
        if known is None:  # the part keeps its variables' ids alive
            variables = (tensor.variable for tensor in part.graph.parameters if tensor.variable is not None)
            known = self._bound.put(key, (self.bind(part), part), variables)
        return known[0]

    def act(self, action: Action, values: Any, own: bool = False) -> None:
        """Runs an action; a step of an optimizer goes by a store of its variables.  own: see `step`."""
        if not isinstance(action, Apply):
            action.run(values)
            return
        gradients = [np.asarray(read(gradient, values)) for gradient in action.gradients]
        self.apply(action.optimizer, gradients, action.variables, own)

    def apply(
        self, optimizer: Any, gradients: Sequence[np.ndarray], variables: Sequence[Variable], own: bool = False
    ) -> None:
        """A step of an optimizer, by arrays.  own: see `step`."""
        memory = self.memory_of(variables)
        store = self.store_of(memory, variables)
        for variable, gradient in zip(variables, gradients, strict=True):
            if gradient.shape != variable.shape:
                raise ValueError(
                    f"apply: gradient of {variable.path!r}: expected shape {variable.shape}, got {gradient.shape}"
                )
            store.put_gradient(variable, gradient)
        self.step(optimizer, store, own)

    def step(self, optimizer: Any, store: ParameterStore, own: bool) -> None:
        """A step of an optimizer, with the gradients in the store.

        own: where several processes share the batch, whether the gradients are those of this process's part.
        """
        variables = optimizer._pydt_slots.variables
        known = {id(variable) for variable in variables}
        if not optimizer.built or any(id(variable) not in known for variable in store.variables):
            optimizer.ready([*variables, *(v for v in store.variables if id(v) not in known)], store)
        if self.sharing is not None:
            self.sharing.before_update(optimizer, store, own)
        elif not self.of_model:
            launcher.check_loop()
        optimizer.step_of(store)

    def store_of(self, memory: Memory, variables: Sequence[Variable]) -> ParameterStore:
        """The store of these variables, which lie in it."""
        store = memory.store
        if store is None or not store.holds_all:
            return memory.move_to_store(list(variables) if store is None else store.variables)
        return store


os.register_at_fork(after_in_child=Workspace.renew)


_default: dict[str, Workspace] = {}


def default() -> Workspace:
    """The workspace of code that belongs to no model's `fit`, on the active device."""
    name = config.device()
    if name not in _default:
        _default[name] = Workspace()
    return _default[name]
