"""`Recording`: what Python code does with tensors, variables, optimizers and metrics, in the order in which it does it.

Nodes are those of a graph.  Beside them stand derivatives (what a tape was asked for) and actions (an optimizer's step,
an assignment, a metric's update).  Where a node reads what an action changes, or what a derivative gives, a new stage
begins: a stage is one graph to plan, with its derivatives, and the actions that follow.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.dtypes import BFLOAT16, real
from pydtconv.engine import Workspace
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.deferred import Deferred, Known, ValueNeededError
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base import context
from pydtconv.loops.actions import Action, Apply, Assign, Call, Update
from pydtconv.loops.derivatives import Derivative, connected
from pydtconv.loops.former_values import FormerValues
from pydtconv.loops.recorded_tensor import Handle
from pydtconv.loops.stages import run_stage
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.branches import check_none
from pydtconv.ops.shape import Cast
from pydtconv.support.strings import are_strings

__all__ = ["Handle", "Recording", "ValueNeededError"]

#: arrays of at least so many elements are fed; smaller ones are part of the graph
_FED = 2


class Recording(Graph):
    """A graph that Python code is recorded in.

    traced: whether it will run later, on other data; else it runs as soon as a value is asked for, or a variable
    changes.  starts: the first node of each stage.  derivatives, actions: of each stage.  values: what has run so far;
    carried: of that, what a later stage has read.
    """

    records = True

    def __init__(self, workspace: Workspace, traced: bool) -> None:
        super().__init__(training=False)
        self.workspace = workspace
        self.traced = traced
        self.starts: list[int] = [0]
        self.derivatives: list[list[Derivative]] = [[]]
        self.actions: list[list[Action]] = [[]]
        self.open_tapes: list[Any] = []
        self.tapes: weakref.WeakSet[Any] = weakref.WeakSet()
        self.watched: dict[int, np.ndarray] = {}
        self.values: dict[Tensor, np.ndarray] = {}
        self.carried: set[Tensor] = set()
        self.seed = 0 if traced else workspace.next_step()  # what is traced takes a number with each run
        self._closed = False
        self._fed: dict[int, tuple[Any, Tensor]] = {}
        self._places: dict[Node, int] = {}
        self._given: dict[Tensor, Derivative] = {}
        #: by their ids, in the order in which they came, so that steps which do the same have the same plans
        self._handles: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
        self._owned: list[tuple[Any, Tensor]] = []
        self._draws = 0
        self.former = FormerValues()

    # --- nodes ------------------------------------------------------------------------------------------------------
    @property
    def stage(self) -> int:
        """The number of the stage that is being recorded."""
        return len(self.starts) - 1

    @property
    def next_stage(self) -> int:
        """The number of the stage of the next node."""
        return self.stage + self._closed

    def stage_of(self, tensor: Tensor) -> int:
        """The number of the stage that gives a tensor; -1 for what is fed, variables and constants."""
        if tensor in self._given:
            return self._given[tensor].stage
        return -1 if tensor.node is None else self.stage_of_place(self.place(tensor.node))

    def stage_of_place(self, place: int) -> int:
        """The number of the stage of the node at this place."""
        return bisect_right(self.starts, place) - 1

    def place(self, node: Node) -> int:
        """The place of a node in `nodes`."""
        for index in range(len(self._places), len(self.nodes)):
            self._places[self.nodes[index]] = index
        return self._places[node]

    def watches(self, tensor: Tensor) -> bool:
        """Whether a tape watches the array that was fed as this tensor."""
        fed = (given for given, fed in self._fed.values() if fed is getattr(tensor, "tensor", tensor))
        return any(id(given) in self.watched for given in fed)

    def add(self, op: Op, inputs: Sequence[Any]) -> Any:
        inner = [x.tensor if isinstance(x, Handle) and x.graph is self else x for x in inputs]
        if not any(isinstance(x, (Tensor, Variable)) for x in inner):
            inner = self._with_watched(inner)
        reads = any(isinstance(x, Tensor) and x in self._given and self._given[x].stage == self.stage for x in inner)
        reads = reads or any(id(inner[i]) in self._assigned for i in op.updates if i < len(inner))
        if reads or self._closed:
            self.cut()
        before = len(self.nodes)
        result = super().add(op, inner)
        if not self.traced:
            tracing.wait(self)
            self.former.note(self.stage, self.nodes[before:])
        for node in self.nodes[before:]:
            if node.op.draws:
                node.stream, self._draws = self._draws, self._draws + 1
        return tuple(map(self.handle, result)) if isinstance(result, tuple) else self.handle(result)

    def _with_watched(self, values: list[Any]) -> list[Any]:
        """Arrays that are watched as tensors, all in the dtype of the first one."""
        watched = [x for x in values if isinstance(x, np.ndarray) and id(x) in self.watched]
        kind = kind_of(watched[0]) if watched else ""
        return [self.feed(x, kind) if any(x is each for each in watched) else x for x in values]

    def check_views(self, values: Iterable[Any]) -> None:
        """Raises ValueError for a part of an array that is watched, cut out by NumPy: nobody has recorded that."""
        for value in values:
            if not isinstance(value, np.ndarray) or id(value) in self.watched:
                continue
            if any(_shares(value, array) for array in self.watched.values()):
                raise ValueError(
                    f"an array of shape {value.shape} is NumPy's view of one that a GradientTape watches, which is not "
                    "recorded: expected ops.convert_to_tensor(x) in the tape's block, or functions of ops, for what is "
                    "to be differentiated; a copy for what is not"
                )

    def keep_former(self, changed: Iterable[Variable]) -> None:
        """Keeps the values of variables that are about to change, where a tape may still take gradients by them."""
        if not all(tape.is_spent for tape in self.tapes):
            self.former.keep(self.stage, changed, self._kept_value)

    def _kept_value(self, variable: Variable) -> Tensor:
        former = Tensor(self, Spec(variable.shape, variable.dtype), f"former {variable.name}")
        self.values[former] = variable.array.copy()
        return former

    def is_gone(self, tensor: Tensor, place: int) -> bool:
        """Whether a node before this place has given a tensor that nobody has kept."""
        return tensor.node is not None and self.place(tensor.node) < place and tensor not in self.values

    def cut(self) -> None:
        """Ends a stage."""
        if not self.traced:
            self.flush()
            return
        self._next_stage()

    def _next_stage(self) -> None:
        self._closed = False
        self._assigned.clear()
        self.starts.append(len(self.nodes))
        self.derivatives.append([])
        self.actions.append([])

    def handle(self, tensor: Tensor) -> Handle:
        """What Python code gets for a tensor."""
        found = Handle(tensor)
        self._handles[id(found)] = found
        return found

    def inner(self, value: Any) -> Any:
        """The graph's own tensor of a handle; the value of another recording's; anything else as it is."""
        if isinstance(value, Handle):
            return value.tensor if value.graph is self else value.graph.value_of(value)  # type: ignore[attr-defined]
        return value

    def _as_tensor(self, value: Any, dtype: str, op: Op) -> Tensor:
        value = self.inner(value)
        self.check_views([value])
        if isinstance(value, np.ndarray) and (value.size >= _FED or id(value) in self.watched):
            return self.feed(value, dtype)
        return super()._as_tensor(value.copy() if isinstance(value, np.ndarray) else value, dtype, op)

    def feed(self, array: np.ndarray, dtype: str | None = None) -> Tensor:
        """The tensor of an array: where code is traced a constant, else an input."""
        kind = dtype or kind_of(array)
        known = self._fed.get(id(array))
        if known is not None and known[0] is array and (self.traced or _same(self.values[known[1]], array)):
            return self._in_dtype(known[1], kind)
        if self.traced:
            tensor = self.constant(array.copy(), kind, array.shape)
            if id(array) in self.watched:
                self._fed[id(array)] = array, tensor
            return tensor
        tensor = self.new_input(Spec(array.shape, kind))
        self.values[tensor] = array.copy()  # it runs later, when the array may hold something else
        self._fed[id(array)] = array, tensor
        return tensor

    def fed(self, array: np.ndarray, dtype: str = "") -> Handle:
        """An array as a tensor that is fed; dtype: in which, by default in its own."""
        return self.handle(self.feed(array, dtype))

    def _in_dtype(self, tensor: Tensor, dtype: str) -> Tensor:
        return tensor if tensor.dtype == dtype else self.inner(self.add(Cast(dtype), [tensor]))

    def new_input(self, spec: Spec) -> Tensor:
        """Another input."""
        return self.input(f"x{len(self.inputs)}", spec)

    def taken_in(self, layer: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments of a layer: arrays as tensors, floats in the layer's dtype, as where nothing is recorded."""
        if context.is_calling():
            return args, kwargs
        inside = {id(each) for each in layer._pydt_flatten_layers()}
        context.recordings[layer] = weakref.ref(self)
        self._owned = [entry for entry in self._owned if id(entry[0]) not in inside]

        def taken(leaf: Any) -> Any:
            if isinstance(leaf, Handle) and leaf.graph is not self:
                leaf = self.inner(leaf)
            if isinstance(leaf, (np.ndarray, np.generic)):
                array = np.asarray(leaf) if not isinstance(leaf, np.ndarray) else leaf
                self.check_views([array])
                return self.handle(self.feed(array, None if array.dtype.kind in "biu" else layer._pydt_array_dtype))
            return leaf

        return tree.map_structure(taken, (args, kwargs))

    def add_loss(self, owner: Any, loss: Tensor) -> None:
        super().add_loss(owner, loss)
        self._owned.append((owner, loss))

    def losses_of(self, layers: Iterable[Any]) -> list[Tensor]:
        """The losses that the last call has added in these layers."""
        inside = {id(layer) for layer in layers}
        return [loss for owner, loss in self._owned if id(owner) in inside]

    # --- derivatives ------------------------------------------------------------------------------------------------
    def differentiate(
        self, targets: Sequence[Any], sources: Sequence[Any], spans: Sequence[tuple[int, int]]
    ) -> list[Handle | None]:
        """Gradients of the sum of all targets by each source, through the nodes of these spans; None where none."""
        ends = [self.inner(target) for target in targets]
        starts = [self._as_source(source) for source in sources]
        found = connected(self, ends, starts, spans)
        if not found.sources:
            return [None] * len(sources)
        stage = max(self.stage_of(end) for end in found.ends) if self.traced else self.stage
        given = {source: Tensor(self, source.spec, f"gradient of {source.name}") for source in found.sources}
        derivative = Derivative(stage, found.ends, given, found.first, tuple(spans))
        self.check_known(stage, found.sources, found.variables)
        self.derivatives[stage].append(derivative)
        self._given.update(dict.fromkeys(given.values(), derivative))
        return [self.handle(given[start]) if start in given else None for start in starts]

    def check_known(self, last: int, sources: Iterable[Tensor], read: Iterable[tuple[Variable, int]]) -> None:
        """Raises RuntimeError where a derivative needs values of variables that are not known any more.

        That are those from before a change, where code is traced, processes share gradients, or something else than an
        action has changed them; and the values before and after, where the derivative is by the variable itself.
        """
        by = {id(source.variable) for source in sources}
        seen: dict[int, Any] = {}
        for variable, place in read:
            stage = max(self.stage_of_place(place), 0)
            changed = any(each is variable for s in range(stage, last) for a in self.actions[s] for each in a.changes())
            if self.traced and changed:
                raise ValueNeededError(f"the value that variable {variable.path!r} had before it was changed")
            known, value = self.former.value_read(variable, stage, changed)
            several = id(variable) in by and seen.setdefault(id(variable), value) is not value
            if several or not known or (changed and self.workspace.sharing is not None):
                raise RuntimeError(
                    f"gradient: variable {variable.path!r} was changed after it was read: take the gradients "
                    "before it is assigned, as before the optimizer's step"
                )

    def _as_source(self, source: Any) -> Tensor:
        if isinstance(source, Variable):
            return self.parameter(source)
        source = self.inner(source)
        if isinstance(source, Tensor):
            return source
        known = self._fed.get(id(source))
        if known is None or known[0] is not source:
            return Tensor(self, Spec(np.shape(source)), "unknown")
        return known[1]

    # --- actions ----------------------------------------------------------------------------------------------------
    def act(self, action: Action) -> None:
        """Notes an action; where values are at hand, what changes a variable happens now."""
        for tensor in action.tensors():  # what reads a later stage's results belongs behind them
            assert self.stage_of(tensor) <= self.stage
        self.actions[self.stage].append(action)
        if not self.traced:
            tracing.wait(self)
        self._closed = self._closed or any(True for _ in action.changes())
        if self._closed and not self.traced:
            self.flush()

    def apply(self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Variable]) -> None:
        """A step of an optimizer by these gradients."""
        check_none(f"{optimizer.name}.apply()")
        self.act(Apply(optimizer, [self.inner(gradient) for gradient in gradients], variables))

    def assign(self, variable: Variable, value: Any, sign: int | None) -> None:
        """variable = value, or += and -= by the sign.

        What is assigned in a layer's call or a tape's block ends no stage, so that gradients go through what was read
        before and is read afterwards; where processes make one value of all of theirs, that comes first.
        """
        check_none(f"{variable.path}.assign()")
        if (self.in_layer or self.open_tapes) and not variable.trainable and self.workspace.sharing is None:
            self.actions[self.stage].append(Assign(variable, self.assigned(variable, value, sign), None))
            return
        inner = self.inner(value)
        if isinstance(inner, Variable):
            inner = self.inner(self.add(Cast(inner.dtype), [inner]))
        self.act(Assign(variable, inner, sign))

    def assigned(self, variable: Variable, value: Any, sign: int | None) -> Tensor:
        if self._closed:  # what was assigned outside of layers is read from here on
            self.cut()
        found: Tensor = self.inner(super().assigned(variable, value, sign))
        self._assigned[id(variable)] = found
        return found

    def update(self, metric: Any, method: str, args: Any, kwargs: Any) -> None:
        """A call of a metric that changes its state."""
        check_none(f"{metric.name}.{method}()")
        inner = tree.map_structure(self._kept, (args, kwargs))
        self.act(Update(metric, method, *inner))

    def _kept(self, value: Any) -> Any:
        """What an action reads later: a tensor, or a value as it is now."""
        inner = self.inner(value)
        return inner.copy() if isinstance(inner, np.ndarray) else inner

    def result(self, call: Any, name: str) -> Any:
        """What a call on metrics gives: later where code is traced."""
        if not self.traced:
            self.flush()
            with tracing.paused():
                found = call()
            return Known(found) if type(found) is float else found
        deferred = Deferred(name)
        self.act(Call(call, deferred))
        return deferred

    # --- values, where code is not traced ---------------------------------------------------------------------------
    def value_of(self, handle: Handle) -> np.ndarray:
        """The value of a handle.  Raises ValueNeededError where code is traced."""
        if self.traced:
            raise ValueNeededError(f"the value of {handle.name} (shape {handle.shape}) is not known while it is traced")
        tensor = handle.tensor
        if tensor.variable is not None:
            return tensor.variable.array
        if tensor.constant is not None:
            return tensor.constant
        if tensor not in self.values:
            self.flush()
        return self.values[tensor]

    def asked(self, variable: Variable) -> None:
        """Python code is about to read a variable.  Raises ValueNeededError where code is traced."""
        if self.traced:
            raise ValueNeededError(f"the value of variable {variable.path!r} is not known while it is traced")
        nodes = self.nodes[self.starts[self.stage] :]
        if id(variable) in self._assigned or any(
            node.inputs[i].variable is variable for node in nodes for i in node.op.updates
        ):
            self.flush()

    def known(self, handle: Handle) -> np.ndarray | None:
        """The value of a handle for people to read; None where code is traced."""
        return None if self.traced else self.value_of(handle)

    def flush(self) -> None:
        """Runs what was recorded since the last time, and begins another stage."""
        stage = self.stage
        tracing.waits_no_longer(self)
        if any(True for action in self.actions[stage] for _ in action.changes()):
            tracing.settle()  # what others have read before this changes it
        if len(self.nodes) == self.starts[stage] and not self.actions[stage] and not self.derivatives[stage]:
            self._closed = False
            self.let_go()
            return
        wanted = {handle.tensor: None for handle in self._handles.values() if self.stage_of(handle.tensor) == stage}
        fused = {tensor: None for action in self.actions[stage] for tensor in action.tensors()}
        with tracing.paused(), tracing.running():
            run_stage(self, stage, list(wanted), list(fused))
        self._next_stage()
        self.let_go()

    def let_go(self) -> None:
        """Drops the values that nobody can ask for any more.

        A recording is a cycle of tensors and nodes, for which the garbage collector may come late.  Where all is
        recorded, and no tape will take another gradient, nothing is left but the values of handles, which go with them.
        """
        over = not tracing.is_traced(self) and all(tape.is_over for tape in self.tapes)
        if over:
            for kept_for_tapes in self._fed, self.watched, self.carried, self.former:
                kept_for_tapes.clear()
        alive = {handle.tensor for handle in self._handles.values()}
        kept = alive | self.carried | {tensor for _, tensor in self._fed.values()} | self.former.tensors()
        values = self.values.copy()  # a handle may go at any time
        self.values = {tensor: value for tensor, value in values.items() if tensor in kept}
        for handle in [each for each in self._handles.values() if not each.takes_value_along] if over else ():
            handle.takes_value_along = True
            weakref.finalize(handle, self._handle_gone, handle.tensor).atexit = False

    def _handle_gone(self, tensor: Tensor) -> None:
        """Drops the value of a tensor, unless another handle has it, or what has not run yet reads it."""
        stage = self.stage
        read = [x for node in self.nodes[self.starts[stage] :] for x in node.inputs]
        read += [x for action in self.actions[stage] for x in action.tensors()]
        if not any(x is tensor for x in (*read, *(handle.tensor for handle in self._handles.values()))):
            self.values.pop(tensor, None)


def _shares(view: np.ndarray, array: np.ndarray) -> bool:
    """Whether they have elements in common, as far as that is found out in a moment."""
    try:
        return np.shares_memory(view, array, max_work=1000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False


def _same(kept: np.ndarray, array: np.ndarray) -> bool:
    return kept.shape == array.shape and kept.dtype == array.dtype and kept.tobytes() == array.tobytes()


def kind_of(array: np.ndarray) -> str:
    """The dtype in which an array is read: floats as they are, integers in 32 or 64 bits, which hold them all.

    bfloat16 is read in float32.  Raises TypeError for complex numbers and strings.
    """
    name = array.dtype.name
    if array.dtype.kind == "f" or name == BFLOAT16:
        return real(name)
    if array.dtype.kind == "c" or are_strings(array):
        raise TypeError(f"traced code: expected real numbers, got {name}")
    return "int64" if array.dtype.itemsize > 4 or array.dtype == np.uint32 else "int32"
