"""`Workspace`: where plans run: one arena, one state of random operators, a store for each set of variables."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from pydtconv import config, devices, replica
from pydtconv.engine import limits, offloading
from pydtconv.engine.bound import Bound, make_store
from pydtconv.engine.planning import planned, updating
from pydtconv.engine.sharing import Sharing
from pydtconv.graph import Executor, Memory, Plan
from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.columns import arrange, make_whole
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.runtime.kept import Kept
from pydtconv.support import launcher
from pydtconv.support.random import next_seed
from pydtconv.support.sizes import as_bytes


class _Shared(Memory):
    """Memory with an arena that others have, too."""

    def __init__(self, workspace: Workspace) -> None:
        self._own_generation = 0
        self._workspace = workspace
        super().__init__(workspace.host.device)
        self.state, self.hooks = workspace.host.state, workspace.host.hooks

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


class Workspace:
    """host: the memory whose arena and random state are used.  name: of the model whose steps run here, if any.

    prepare: says more of a graph of a recording that is about to be planned.
    """

    _all: ClassVar[weakref.WeakSet[Workspace]] = weakref.WeakSet()

    def __init__(
        self, host: Memory | None = None, name: str | None = None, prepare: Callable[[Graph], None] | None = None
    ) -> None:
        if host is None:
            host = Memory(devices.get(config.device()))
            host.state.seed = next_seed()
        self.host = host
        self.name = name
        self.lock = threading.RLock()
        Workspace._all.add(self)
        #: those who run the same step on other shares of the batch; None where the batch is this process's alone
        self.sharing: Sharing | None = None
        self.prepare = prepare
        self._memories = Kept(in_variables=not self.of_model)
        #: plans that recordings have run at once
        self.parts = Kept(in_variables=not self.of_model)
        #: the process whose step runs, 0 while none does; not this one in a process that was forked meanwhile
        self._running = 0
        #: the same of a step within which others may run
        self._running_around = 0

    @property
    def of_model(self) -> bool:
        """Whether a model has it; else it is that of code which belongs to no model's `fit`."""
        return self.name is not None

    # --- who runs ---------------------------------------------------------------------------------------------------
    @property
    def runs(self) -> bool:
        """Whether a step runs, within which no other may."""
        return bool(self._running)

    @contextmanager
    def running(self) -> Iterator[None]:
        """While a step runs, when nothing else may use the arena."""
        self._running = os.getpid()
        try:
            yield
        finally:
            self._running = 0

    @contextmanager
    def running_around(self) -> Iterator[None]:
        """While Python code runs that a step of a user's own is made of."""
        self.check_forked()
        before, self._running_around = self._running_around, os.getpid()
        try:
            yield
        finally:
            self._running_around = before

    def check_forked(self) -> None:
        """Raises RuntimeError in a process that was forked within a step."""
        if not {self._running, self._running_around} <= {0, os.getpid()}:
            raise RuntimeError(
                f"model {self.name!r}: this process was forked while another thread ran a step of the model, "
                "whose weights may be half updated: fork between two steps, or start processes by spawn"
            )

    def check_idle(self) -> None:
        """Raises RuntimeError while a step runs, and in a process that was forked during one."""
        self.check_forked()
        if self._running:
            raise RuntimeError(
                f"model {self.name!r}: a step is running on device {self.host.device.name}: a layer, a loss or a hook "
                "inside it cannot run another step of the same model"
            )

    @classmethod
    def renew(cls) -> None:
        """Frees all locks, in a child process, but those of the thread that forked: the others do not exist there."""
        for workspace in list(cls._all):
            if not workspace.lock._is_owned():  # type: ignore[attr-defined]
                workspace.lock = threading.RLock()

    def next_step(self) -> int:
        """Counts a run of a recording; its number, which random operators draw by."""
        with self.lock:  # while another thread's part runs, the state has that one's number
            self.host.state.step += 1
            return self.host.state.step

    # --- plans in memory --------------------------------------------------------------------------------------------
    def memory_of(self, variables: Sequence[Variable]) -> Memory:
        """The memory of a set of variables that are trained together."""
        key = frozenset(map(id, variables))
        return self._memories.get(key) or self._memories.put(key, _Shared(self), variables)

    def bind(
        self,
        graph: Graph,
        memory: Memory,
        optimizer: Any = None,
        variables: Sequence[Variable] = (),
        before: Bound | None = None,
    ) -> Bound:
        """A graph, planned within the limits that hold now, in this memory.

        optimizer: that which takes the gradients by these variables.  before: what the new one is to take the place
        of, which is returned where no other plan gives the same bits.
        """
        earlier = None if before is None else before.executor.plan
        options = updating(optimizer, variables, self.host)
        if graph.loss is None:
            options["updates"] = None
        plan: Plan = planned(graph, memory, limits.current(), earlier, **options)
        if before is not None and plan is earlier:
            return before
        with self.lock:
            arrange(plan.graph, replica.current().columns)
            updater = replica.current().updater(optimizer) if plan.applies_gradients else None
            if plan.gradient_order:
                make_store(plan, memory)
            return Bound(Executor(plan, memory, updater), memory)

    def run(self, bound: Bound, inputs: Any, step: int) -> dict[str, np.ndarray]:
        """One run of a plan, with the random numbers of a step."""
        state = self.host.state
        now, state.step = state.step, step
        try:
            return bound.run(inputs)
        finally:
            state.step = now

    # --- steps of optimizers ----------------------------------------------------------------------------------------
    def apply(
        self, optimizer: Any, gradients: Sequence[np.ndarray], variables: Sequence[Variable], own: bool = False
    ) -> None:
        """A step of an optimizer, by arrays.  own: see `step`."""
        make_whole(variables)
        memory = self.memory_of(variables)
        store = _store_of(memory, variables)
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


def _store_of(memory: Memory, variables: Sequence[Variable]) -> ParameterStore:
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


@contextmanager
def memory_limit(limit: int | str, offload: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Within the block what runs from a plan takes at most so many bytes: loops with a tape, functions, `fit`.

        with pydtconv.memory_limit("800MiB", offload="/scratch"):
            for x, y in batches:
                train_step(x, y)

    limit: bytes, or a text such as "800MiB", of each plan's arena; weights and the optimizer's slots are in it.
    offload: as that of `fit`, a folder of a local disk, or "host" on a GPU.  A `fit` with a `memory_limit` of its own
    has that one.

    Raises ValueError for what is no limit or no folder, and, where something runs, MemoryLimitError where no plan fits.
    """
    nbytes = as_bytes("limit", limit)
    if nbytes is None:
        raise ValueError("limit: expected bytes, or a text such as '800MiB', got None")
    with limits.held(limits.Limits(nbytes, offloading.folder_of(offload, nbytes))):
        try:
            yield
        finally:
            for workspace in list(_default.values()):
                with workspace.lock:  # another thread's run may need the file; the next one makes another
                    offloading.release(workspace.host)
