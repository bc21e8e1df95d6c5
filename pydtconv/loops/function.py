"""`function`: Python code that is traced once for each signature of its arguments, and runs from plans after that."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from pydtconv import config, hooks, tree
from pydtconv.engine import limits
from pydtconv.engine.workspace import Workspace, default
from pydtconv.graph.ir.deferred import Deferred, ValueNeededError
from pydtconv.graph.ir.graph import Tensor, current_graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.hooks import as_result
from pydtconv.loops.program import Program
from pydtconv.loops.recorded_tensor import Handle
from pydtconv.loops.recording import Recording, kind_of
from pydtconv.ops.base import Spec
from pydtconv.support.last_used import LastUsed

#: programs that are kept; the one that was not used for longest goes first
_KEPT = 24
#: whether all functions run as they are written
_all_eager = [False]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Lets all functions run as they are written, each time, so that a debugger stops in them; False: from plans again.

    What several processes share runs from plans in any case.
    """
    _all_eager[0] = bool(run_eagerly)


class Function:
    """A function whose array arguments are fed, and whose other arguments are part of what is traced.

    call(*args, **kwargs) must be written in layers, `pydtconv.ops`, tapes, optimizers and metrics.  Where it asks for a
    value (`float(loss)`, `if loss > 1:`) it cannot be traced: it then runs as it is written, each time.
    eager: whether it does that from the start.  state, attributes: what else a program depends on, asked at each call;
    attributes may be changed by the call itself.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        workspace: Workspace | None = None,
        eager: bool = False,
        state: Callable[[], Hashable] | None = None,
        attributes: Callable[[], Hashable] | None = None,
    ) -> None:
        self._call = call
        self._workspace = workspace
        self._state, self._attributes = state, attributes
        self.eager = eager
        self._bound: tuple[Function, Any] | None = None
        self._programs: LastUsed[Program] = LastUsed(_KEPT)
        functools.update_wrapper(self, call, updated=())

    @property
    def workspace(self) -> Workspace:
        return default() if self._workspace is None else self._workspace

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        name = f"_function_{self._call.__qualname__}"  # a subclass may have a function of the same name
        bound = owner.__dict__.get(name)
        if bound is None:
            bound = Function(
                functools.partial(self._call, owner), self._workspace, self.eager, self._state, self._attributes
            )
            bound._bound = self, owner
            object.__setattr__(owner, name, bound)
        return bound

    def __reduce__(self) -> Any:
        """A copy or a pickle is the function of this name itself, or that of the copied owner; it traces anew."""
        return self._call.__qualname__ if self._bound is None else (Function.__get__, self._bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        graph = current_graph()
        if graph is not None:  # a part of what is being traced
            return self._call(*args, **kwargs)
        leaves = [_as_value(leaf) for leaf in tree.flatten((args, kwargs))]
        args, kwargs = tree.pack_sequence_as((args, kwargs), leaves)
        if not self.eager and (not _all_eager[0] or self.workspace.sharing is not None):
            try:
                return self._program(args, kwargs, leaves).run([leaf for leaf in leaves if _is_array(leaf)])
            except ValueNeededError as error:
                if self.workspace.sharing is not None:
                    raise NotImplementedError(
                        f"{_name(self._call)}: expected a step that runs from a plan where several processes share a "
                        f"batch, of which each knows the values of its share alone: {error}"
                    ) from error
                self.eager = True
                told = f"{_name(self._call)} runs as it is written, which is slower than from a plan: {error}"
                warnings.warn(told, UserWarning, stacklevel=2)
        return self._run_eagerly(args, kwargs)

    def _program(self, args: Any, kwargs: Any, leaves: list[Any]) -> Program:
        call = (tree.layout((args, kwargs)), tuple(map(_signature, leaves)), config.of_kernels(), limits.current())
        key = (*call, *self._asked())
        program = self._programs.get(key)
        if program is None:
            with self.workspace.lock:
                program = self._traced(args, kwargs, leaves)
                after = (*call, *self._asked())
                key = after if after[:-1] == key[:-1] else key  # attributes that the trace itself has set
                self._programs.put(key, program)
        return program

    def _asked(self) -> tuple[Hashable, Hashable]:
        """What else a program depends on: the state, and the attributes of layers."""
        return (self._state() if self._state else None), (self._attributes() if self._attributes else None)

    def _traced(self, args: Any, kwargs: Any, leaves: list[Any]) -> Program:
        recording = Recording(self.workspace, traced=True)
        inputs: list[Tensor] = []
        stand_ins = []
        for leaf in leaves:
            if _is_array(leaf):
                inputs.append(recording.new_input(Spec(leaf.shape, _input_kind(leaf))))
                stand_ins.append(recording.handle(inputs[-1]))
            else:
                stand_ins.append(leaf)
        args, kwargs = tree.pack_sequence_as((args, kwargs), stand_ins)
        with recording:
            result = self._call(*args, **kwargs)
        return Program(recording, inputs, result)

    def _run_eagerly(self, args: Any, kwargs: Any) -> Any:
        recording = Recording(self.workspace, traced=False)
        args, kwargs = tree.map_structure(
            lambda leaf: recording.fed(leaf, _input_kind(leaf)) if _is_array(leaf) else leaf, (args, kwargs)
        )
        with self.workspace.lock, recording:
            result = self._call(*args, **kwargs)
            recording.flush()
        result, args, kwargs = tree.map_structure(_as_value, result), None, None
        recording.let_go()
        return result

    def forget(self) -> None:
        """Drops all programs."""
        self._programs.clear()


@hooks.run_as_written.fill
def _run_as_written(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> Any:
    return Function(function)._run_eagerly(tuple(arrays), {})


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray)


def _as_value(leaf: Any) -> Any:
    """The array of a tensor of another recording; numbers of NumPy as arrays; anything else as it is."""
    if isinstance(leaf, Handle):
        return as_result(leaf.numpy())
    if isinstance(leaf, np.generic):
        return np.asarray(leaf)
    return leaf.value if isinstance(leaf, Deferred) else leaf


def _input_kind(array: np.ndarray) -> str:
    kind = kind_of(array)
    return config.floatx() if kind in ("float16", "float64") else kind


def _signature(leaf: Any) -> Hashable:
    if _is_array(leaf):
        return leaf.shape, leaf.dtype.kind, kind_of(leaf)
    if isinstance(leaf, (set, bytearray)):
        return type(leaf).__name__, frozenset(leaf) if isinstance(leaf, set) else bytes(leaf)
    if isinstance(leaf, Variable) or getattr(type(leaf), "__hash__", None) is None:
        return _Same(leaf)
    if isinstance(leaf, float):
        return type(leaf), float(leaf).hex()  # of -0.0 and 0.0, which are equal, and of NaN, which is not
    return type(leaf), leaf


class _Same:
    """Stands for an object in a key: equal to itself alone, and keeps it, so that no other one gets its address."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _name(call: Any) -> str:
    return str(getattr(getattr(call, "func", call), "__qualname__", repr(call)))


def function(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: traces the function once for each signature, and runs plans after that; as `tf.function`.

    options: `tf.function`'s, such as `jit_compile` and `reduce_retracing`; every function is compiled, whatever they
    say.  `autograph=False` and True mean the same: Python's `if` and `for` are run while the function is traced.
    """
    known = {
        "input_signature", "autograph", "jit_compile", "reduce_retracing", "experimental_implements",
        "experimental_autograph_options", "experimental_attributes", "experimental_relax_shapes",
        "experimental_compile", "experimental_follow_type_hints",
    }  # fmt: skip
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(f"function: unknown argument {unknown[0]!r}")
    return (lambda inner: Function(inner)) if func is None else Function(func)
