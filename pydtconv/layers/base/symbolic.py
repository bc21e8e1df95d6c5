"""Symbolic tensors of the functional style, and the record of calls from which a model is made.

`KerasTensor` stands for a tensor whose batch size (and graph) is not known yet.  Calling a layer or an op on it infers
the output's shape and leaves a `Node` at the operation; a functional model walks these nodes back from its outputs and
replays them on the tensors of a graph.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pydtconv import ops, tree
from pydtconv.dtypes import BFLOAT16, name_of
from pydtconv.graph.ir.graph import Graph, current_graph
from pydtconv.layers.unknown_extents import PROBES, Fill, probed, probes_untold, with_short_axes
from pydtconv.naming import auto_name, checked_name
from pydtconv.ops.base import Op, Spec, outputs_of
from pydtconv.ops.checks import read_as
from pydtconv.ops.operations import Card, Waiting
from pydtconv.ops.operators import Operators, equal
from pydtconv.ops.shape import Cast
from pydtconv.ops.table_op import TableOp
from pydtconv.own_names import KerasName
from pydtconv.serialization.configurable import Configurable


class KerasHistory(NamedTuple):
    """Where a tensor comes from: the tensor_index-th output of the node_index-th call of operation."""

    operation: Any
    node_index: int
    tensor_index: int


class KerasTensor(Operators, Waiting):
    """A tensor of known rank and dtype whose batch extent is usually None.

    mask_spec: of the mask that will go with it, where one will.  times: how often the batch is in its only extent that
    is not known, as after `ops.reshape(x, (-1, 3))`; 1 where that is not known, either.
    """

    mask_spec: Spec | None = None
    times = 1

    def __init__(
        self,
        shape: Sequence[int | None],
        dtype: str = "float32",
        sparse: bool = False,
        ragged: bool = False,
        record_history: bool = True,
        name: str | None = None,
    ) -> None:
        if sparse or ragged or not record_history:
            raise NotImplementedError(
                f"KerasTensor: expected sparse=False, ragged=False and record_history=True, got {sparse}, {ragged}, "
                f"{record_history}"
            )
        if not isinstance(shape, Iterable):
            raise ValueError(f"KerasTensor: shape: expected extents, got {shape!r}")
        self.shape = tuple(shape)
        self.dtype = name_of(dtype)
        self.name = checked_name(name or auto_name("keras_tensor"))
        self._keras_history: KerasHistory | None = None

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self.dtype)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def node(self) -> Node:
        """The call that made this tensor."""
        if self._keras_history is None:
            raise ValueError(f"{self} was made by no layer")
        return self._keras_history.operation._pydt_inbound_nodes[self._keras_history.node_index]

    def apply_op(self, op: Op, inputs: Sequence[Any]) -> Any:
        return OpCall(op)(*inputs)

    def apply_function(self, card: Card, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, config = card.split(args, kwargs)
        symbolic = {name: config.pop(name) for name in list(config) if symbolic_leaves(config[name])}
        return FunctionCall(card, config)(*call, **symbolic)

    def _pydt_stand_in(self, graph: Graph, fill: Fill) -> Any:
        """What stands for it in a graph on which shapes are inferred."""
        tensor: Any = graph.input(f"x{len(graph.inputs)}", fill(self.spec, self))
        if self.mask_spec is not None:
            tensor._keras_mask = graph.input(f"x{len(graph.inputs)}", fill(self.mask_spec, self))
        return tensor

    def reshape(self, newshape: Any) -> Any:
        return ops.reshape(self, newshape)

    def squeeze(self, axis: Any = None) -> Any:
        return ops.squeeze(self, axis)

    def __bool__(self) -> bool:
        raise TypeError(f"{self} has no value yet: Python cannot branch on it")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise ValueError(f"{self} has no value yet: use pydtconv.ops or a layer on it, not NumPy")

    def __len__(self) -> int:
        if not self.shape or self.shape[0] is None:
            raise TypeError(f"len() of {self}: the first extent is not known")
        return self.shape[0]

    def __iter__(self) -> Any:
        raise NotImplementedError(f"{self} cannot be iterated over")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        """Identity, as in Keras; `ops.equal` compares element by element, as `!=` does."""
        return self is other

    def __ne__(self, other: object) -> Any:
        return equal("not_equal", self, other, among_tensors=True)

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype}, name={self.name}>"


class Node:
    """One symbolic call of an operation: its arguments as they came and its outputs."""

    def __init__(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        self.operation = operation
        self.args = args
        self.kwargs = kwargs
        self.outputs = outputs
        self.input_tensors: list[KerasTensor] = symbolic_leaves((args, kwargs))
        self.output_tensors: list[KerasTensor] = tree.flatten(outputs)
        index = len(operation._pydt_inbound_nodes)
        for i, tensor in enumerate(self.output_tensors):
            tensor._keras_history = KerasHistory(operation, index, i)
        operation._pydt_inbound_nodes.append(self)

    @property
    def is_input(self) -> bool:
        return not self.input_tensors

    @property
    def parent_nodes(self) -> list[Node]:
        """The nodes that made the inputs, each once."""
        return list(dict.fromkeys(tensor.node for tensor in self.input_tensors if tensor._keras_history))

    def __repr__(self) -> str:
        return f"<Node {self.operation.name} {self.input_tensors} -> {self.output_tensors}>"


class Operation(Configurable):
    """What can be called on symbolic tensors: layers, models, functions, and what a subclass computes in `call`."""

    #: where configs begin to count the calls; a functional model counts the call that made it
    _pydt_first_call = 0
    _pydt_inbound_nodes: list[Node]
    _inbound_nodes = KerasName("_pydt_inbound_nodes")

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = auto_name(type(self).__name__)
        if not isinstance(name, str) or "/" in name:
            raise ValueError(f"name: expected a string without '/', got {name!r}")
        self.name = checked_name(name)
        object.__setattr__(self, "_pydt_inbound_nodes", [])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self.symbolic_call if symbolic_leaves((args, kwargs)) else self.call)(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """What is computed: to be written by a subclass, in `pydtconv.ops`."""
        raise NotImplementedError(f"operation {type(self).__name__} has no call()")

    def symbolic_call(self, *args: Any, **kwargs: Any) -> Any:
        """The symbolic outputs of a call, which is recorded."""
        outputs = self.compute_output_spec(*args, **kwargs)
        Node(self, args, kwargs, outputs)
        return outputs

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Symbolic outputs for symbolic inputs, found by tracing `call`."""
        return infer_outputs(self.call, args, kwargs)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal operation, as plain data; its name, where the constructor takes one."""
        parameters = inspect.signature(type(self).__init__).parameters
        named = "name" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        return {**({"name": self.name} if named else {}), **self._pydt_own_config()}

    @property
    def _pydt_kind(self) -> str:
        """The name of its class, as summaries show it."""
        return type(self).__name__

    @property
    def input(self) -> Any:
        """The symbolic input of the only call so far (a list where there are several inputs)."""
        return _one(self._pydt_only_node("input").input_tensors)

    @property
    def output(self) -> Any:
        """The symbolic output of the first call."""
        return _one(self._pydt_only_node("output").output_tensors)

    def _pydt_only_node(self, attribute: str) -> Node:
        if not self._pydt_inbound_nodes:
            raise AttributeError(f"{type(self).__name__} {self.name!r} has no {attribute}: it was not called yet")
        return self._pydt_inbound_nodes[0]


class FunctionCall(Operation):
    """A function of `ops` as an operation: what `a + b` on symbolic tensors leaves.

    config: the arguments that Keras's operation keeps; a call has the others.
    """

    def __init__(self, card: Card, config: Mapping[str, Any], name: str | None = None) -> None:
        super().__init__(name or auto_name(card.class_name))
        self.card = card
        self.config = dict(config)

    @property
    def _pydt_kind(self) -> str:
        return self.card.class_name

    def call(self, *args: Any, **kwargs: Any) -> Any:
        found, graph = self.card.apply(args, kwargs, self.config), current_graph()
        return found if graph is None else tree.map_structure(lambda leaf: _in_graph(leaf, graph), found)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Symbolic outputs for symbolic inputs.  Raises ValueError, as Keras does, also for an index out of range."""
        numbers = [int(n) for n in tree.flatten(self.config) if isinstance(n, (int, np.integer)) and n > 1]
        try:
            return infer_outputs(self.call, args, kwargs, numbers)
        except IndexError as error:
            raise ValueError(*error.args) from error

    def __repr__(self) -> str:
        return f"<FunctionCall {self.name} {self.card.class_name} {self.config}>"


def _in_graph(leaf: Any, graph: Graph) -> Any:
    """A result as a tensor, as extents are, too."""
    if hasattr(leaf, "spec"):
        return leaf
    array = np.asarray(leaf, "int32" if isinstance(leaf, int) else None)
    return graph.constant(array, array.dtype.name, array.shape)


class OpCall(Operation):
    """One op as a node of a functional model: what an operator that is called on symbolic tensors leaves."""

    def __init__(self, op: Op, name: str | None = None) -> None:
        super().__init__(name or auto_name(getattr(op, "kind", None) or type(op).__name__))
        self.op = op

    @property
    def _pydt_kind(self) -> str:
        return type(self.op).__name__

    def __call__(self, *inputs: Any) -> Any:
        if not symbolic_leaves(inputs):
            return self.op(*inputs)
        dtype = next(x.dtype for x in inputs if isinstance(x, KerasTensor))
        specs = [_spec_of(x, str(getattr(x, "dtype", dtype)) if self.op.mixes_dtypes else dtype) for x in inputs]
        specs = _as_read(self.op, inputs, specs)

        def infer(fill: Fill) -> Sequence[Spec]:
            return outputs_of(self.op, *(fill(spec, x) for spec, x in zip(specs, inputs, strict=True)))

        with probes_untold(specs):
            tensors = probed(infer, lambda a, b: tuple(map(_merged, a, b)), symbolic_leaves(inputs))
        if isinstance(self.op, TableOp):
            given = [x.dtype if isinstance(x, KerasTensor) else "" for x in inputs]
            for tensor in tensors:
                tensor.dtype = self.op.given_dtype(tensor.dtype, given)
        outputs = tensors[0] if len(tensors) == 1 else tensors
        Node(self, inputs, {}, outputs)
        return outputs

    def __repr__(self) -> str:
        return f"<OpCall {self.name} {self.op}>"


def symbolic_leaves(structure: Any) -> list[KerasTensor]:
    """The symbolic tensors in a structure."""
    return [leaf for leaf in tree.flatten(structure) if isinstance(leaf, KerasTensor)]


def is_keras_tensor(x: Any) -> bool:
    """Whether x is a symbolic tensor."""
    return isinstance(x, KerasTensor)


def infer_outputs(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], numbers: Sequence[int] | None = None
) -> Any:
    """The symbolic outputs of fn on symbolic arguments, found by tracing fn on graphs that are thrown away.

    numbers: where fn is a function of `ops`, those among its settings.
    """
    leaves = symbolic_leaves((args, kwargs))
    trace = functools.partial(_trace, fn, args, kwargs)
    with probes_untold([tensor.spec for tensor in leaves]):
        outputs = probed(trace, _merged_structures, leaves, numbers)
    unknown = [tensor.shape.count(None) for tensor in symbolic_leaves(outputs)]
    if numbers is not None and min(unknown, default=0) < max(tensor.shape.count(None) for tensor in leaves):
        with contextlib.suppress(ValueError, IndexError):  # the end of a slice may lie behind that of a short axis
            tree.map_structure(_limit, outputs, with_short_axes(trace))
    return outputs


def _limit(tensor: KerasTensor, short: _Output) -> None:
    """Takes back the extents that short axes have not."""
    tensor.shape = _merged(tensor.spec, short.spec).shape


class _Output:
    """What a trace has found of an output: its spec, and that of its mask."""

    def __init__(self, tensor: Any) -> None:
        mask = getattr(tensor, "_keras_mask", None)
        self.spec: Spec = tensor.spec
        self.mask = None if mask is None else _spec_of(mask, "float32")


def _merged_structures(a: Any, b: Any) -> Any:
    try:
        return tree.map_structure(_merged_with_masks, a, b)
    except ValueError as error:
        told = "expected extents that are known: the number of results, or of their axes, depends on them"
        raise ValueError(told) from error


def _merged_with_masks(a: _Output, b: _Output) -> KerasTensor:
    tensor = _merged(a.spec, b.spec)
    if a.mask is not None and b.mask is not None:
        tensor.mask_spec = _merged(a.mask, b.mask).spec
    return tensor


def _trace(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], fill: Fill) -> Any:
    graph = Graph(training=False)

    def stand_in(leaf: Any) -> Any:
        return leaf._pydt_stand_in(graph, fill) if isinstance(leaf, KerasTensor) else leaf

    args, kwargs = tree.map_structure(stand_in, (args, kwargs))
    with graph:
        outputs = fn(*args, **kwargs)
    return tree.map_structure(_Output, outputs)


def _spec_of(value: Any, dtype: str) -> Spec:
    if hasattr(value, "spec"):
        return value.spec
    return Spec(np.shape(value), dtype)


def _as_read(op: Op, inputs: Sequence[Any], specs: list[Spec]) -> list[Spec]:
    """Specs in the dtypes in which a graph will hand the inputs over."""
    if all(spec.dtype != BFLOAT16 for spec in specs) or isinstance(op, Cast):
        return specs
    weak = [not isinstance(x, KerasTensor) for x in inputs]
    return [Spec(spec.shape, name) for spec, name in zip(specs, read_as(op, specs, weak), strict=True)]


def _merged(a: Spec, b: Spec) -> KerasTensor:
    shape = tuple(i if i == j else None for i, j in zip(a.shape, b.shape, strict=True))
    tensor = KerasTensor(shape, a.dtype)
    if shape.count(None) == 1:
        first, second = (spec.shape[shape.index(None)] or 0 for spec in (a, b))
        if first * PROBES[1] == second * PROBES[0] and first % PROBES[0] == 0:
            tensor.times = first // PROBES[0]
    return tensor


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values
