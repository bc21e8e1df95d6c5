"""Symbolic tensors and the nodes between them: what a model is, before a plan says how it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import dtypes, hooks
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.deferred import Deferred, MetricUpdate, ValueNeededError
from pydtconv.graph.ir.variable import Variable
from pydtconv.kernels.base import AlgorithmKernel, Keepable, Kernel, WindowKernel
from pydtconv.kernels.lookup import find
from pydtconv.ops.base import Op, Spec, is_image, outputs_of
from pydtconv.ops.body_loop import Scan
from pydtconv.ops.branches import check_none
from pydtconv.ops.checks import read_as
from pydtconv.ops.operators import Operators, equal
from pydtconv.ops.shape import Cast
from pydtconv.ops.table_op import TableOp
from pydtconv.serialization.budget import claim


def current_graph() -> Graph | None:
    """The innermost graph that this thread is tracing, or None."""
    return tracing.current()


@hooks.graph_of_draws.fill
def _graph_of_draws() -> Graph | None:
    graph = current_graph()
    return None if graph is None or (graph.runs_once and graph.outer is None) else graph


#: names of operators that give yes or no
_COMPARISONS = frozenset(("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"))

#: what is read of a variable after it was assigned to is no function of what was assigned
_STOP = TableOp("stop_gradient")


class Tensor(Operators):
    """The output of a node, a graph's input, or a parameter as seen in a graph.

    node is None for inputs, parameters and constants; variable is set for parameters, constant for constants.
    weak: whether it follows from these two alone, as a variable in another shape does: it is read as what it meets.
    """

    weak = False

    def __init__(self, graph: Graph, spec: Spec, name: str, node: Node | None = None, index: int = 0) -> None:
        self.graph = graph
        self.spec = spec
        self.name = name
        self.node = node
        self.index = index
        self.variable: Variable | None = None
        self.constant: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int | None, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> str:
        return self.spec.dtype

    def __eq__(self, other: object) -> Any:
        return equal("equal", self, other, self._is_traced)

    def __ne__(self, other: object) -> Any:
        return equal("not_equal", self, other, self._is_traced)

    @property
    def _is_traced(self) -> bool:
        """Whether it is a user's code that has this tensor now: its graph is traced, and no recording's own."""
        return current_graph() is self.graph and not self.graph.records

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        """True, as of any object; but what a comparison gave has no value yet, nor has the number of a step."""
        counts = self.graph.outer is not None and self.dtype not in dtypes.FLOATING
        if counts or (self.node is not None and self.node.op.name in _COMPARISONS):
            raise ValueNeededError(f"{self} has no truth value while code is traced: use ops.where")
        return True

    def _number(self) -> Any:
        raise ValueNeededError(f"the value of {self} is not known while it is traced")

    __int__ = __float__ = _number

    def apply_op(self, op: Op, inputs: Sequence[Any]) -> Tensor | tuple[Tensor, ...]:
        """Adds the op to its graph, or to the body of a loop in it that is being traced."""
        graph = current_graph()
        return (graph if graph is not None and graph.outer is not None else self.graph).add(op, inputs)

    def __repr__(self) -> str:
        return f"<Tensor {self.name} shape={self.shape} dtype={self.dtype}>"


def is_weak(tensor: Tensor) -> bool:
    return tensor.weak or tensor.variable is not None or tensor.constant is not None


class Node:
    """One application of an op.  scope says which layer it came from ("conv2d_1/..."); tables and traces show it.

    device: where it runs; that of the graph, until a pass says otherwise.
    stream: of its random numbers, where that is not to follow from its place in the graph.
    """

    def __init__(self, graph: Graph, op: Op, inputs: tuple[Tensor, ...], scope: str) -> None:
        self.op = op
        self.inputs = inputs
        self.scope = scope
        self.device = graph.device
        self.stream: int | None = None
        self._found: tuple[Op, str, str, Kernel[Any]] | None = None
        specs = outputs_of(op, *(tensor.spec for tensor in inputs))
        self.name = f"{scope or op.name}#{len(graph.nodes)}"
        self.outputs = tuple(graph.tensor(spec, f"{self.name}:{i}", self, i) for i, spec in enumerate(specs))

    @property
    def kernel(self) -> Kernel[Any]:
        """What runs the op on the device.  Raises MissingKernelError where there is nothing."""
        dtype = self.op.kernel_dtype(*(tensor.spec for tensor in self.inputs))
        found = self._found
        if found is None or found[0] is not self.op or found[1:3] != (self.device, dtype):
            found = self._found = (self.op, self.device, dtype, find(self.op, self.device, dtype))
        return found[3]

    @property
    def window_kernel(self) -> WindowKernel[Any]:
        """The same of an operator that reads windows of images."""
        kernel = self.kernel
        assert isinstance(kernel, WindowKernel)
        return kernel

    @property
    def algorithm_kernel(self) -> AlgorithmKernel[Any]:
        """The same of a convolution."""
        kernel = self.kernel
        assert isinstance(kernel, AlgorithmKernel)
        return kernel

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.op}>"


def joins_channels(node: Node) -> bool:
    """Whether the node concatenates images along their channels: the plan does that by placing, not by its op."""
    if not node.op.concatenates or not is_image(node.outputs[0].shape):
        return False
    rank = len(node.outputs[0].shape)
    return node.op.axis % rank == rank - 1  # type: ignore[attr-defined]


def base_of(tensor: Tensor) -> Tensor:
    """The tensor whose elements this one is a view of."""
    while tensor.node is not None and tensor.node.op.is_view:
        tensor = tensor.node.inputs[0]
    return tensor


def replay_flops(node: Node) -> int:
    """Floating-point operations of computing a node's output again; 0 where memory traffic takes the time."""
    if joins_channels(node):
        return 0
    return sum(cost.flops for cost in node.op.replay_cost(*(tensor.spec for tensor in node.inputs)).values())


@dataclass(frozen=True)
class CompileOptions:
    """What a graph is compiled for.

    variant: of convolution.  workspace_bytes: take algorithms with workspaces of at most so many bytes, where there are
    such and neither the layer nor the variant says which to take; 0: those with the smallest ones.  elides: whether a
    normalized image may be left out of memory.  kept_bytes: of what forward may keep for backward to compute less (see
    passes/kept_spectra.py); None: no limit.
    """

    variant: str = "AUTO"
    workspace_bytes: int | None = None
    elides: bool = True
    kept_bytes: int | None = None


@dataclass(frozen=True)
class Thresholds:
    """Sizes below which a plan leaves something out that would cost a call more than it gains.

    applied_gradients: bytes of all gradients, above which each is applied as soon as it is complete.  gradient_rows:
    bytes of one gradient that are computed and applied at a time.  halo_pixels: pixels that the own rows of an image
    give while its halo travels; each call packs all filters, as long as some tens of pixels take.  offloaded: bytes of
    a storage that is written elsewhere.
    """

    applied_gradients: int = 4 << 20
    gradient_rows: int = 8 << 20
    halo_pixels: int = 4096
    offloaded: int = 1 << 18


class Graph:
    """Nodes in the order in which they were traced, which is an order in which they can run.

    training: whether layers were traced as in a training step.  device: where its nodes run.  outputs: named results;
    loss: the scalar to differentiate, or None.  sources: what it is differentiated by; None: all trainable variables.
    gradients: tensors whose gradient is a result, too, by its name.  metric_updates: calls of metrics on its tensors,
    and what is assigned to variables.
    split: how its first part is split into patches (see passes/split.py), split_draw: the number of a stochastic
    scheme.  The rest is what passes leave to the stages behind them:
    algorithms: of each convolution, by direction.  before_choice: its operator as it was before these were chosen.
    fused_reductions: nodes whose backward also computes the reductions of a batch normalization, and that.
    bypassed: those of them whose backward writes the gradient of what the normalization read, and the normalization.
    elided: tensors that are not materialized, and what is read instead of them.
    kept: nodes whose forward leaves something for backward, and what.
    placements: of inputs and results by name, where they lie in those of all processes together.
    partition: the mesh of processes over which images are cut, as this one sees it (see graph/spatial); None: none.
    cut_variables: those whose columns these processes share.
    whole_results: whether each process of the mesh gets all of each result; images may then be absent, too.
    """

    #: whether Python code is being recorded that also calls optimizers and metrics (see pydtconv/loops)
    records = False
    #: whether it is thrown away after one run, as that of a call on arrays is
    runs_once = False
    thresholds = Thresholds()
    #: of a loop's body, the graph around it (see body.py)
    outer: Graph | None = None
    #: variables whose values Python code has read, which the plan then holds; None where no plan is kept
    read_values: list[Any] | None = None

    def __init__(self, training: bool = False, device: str = "cpu") -> None:
        self.training = training
        self.device = device
        self.options = CompileOptions()
        self.split: Any = None
        self.split_draw: int | None = None
        self.algorithms: dict[Node, dict[str, str]] = {}
        self.before_choice: dict[Node, Op] = {}
        self.fused_reductions: dict[Node, Node] = {}
        self.bypassed: dict[Node, Node] = {}
        self.elided: dict[Tensor, Tensor] = {}
        self.kept: dict[Node, tuple[Keepable, ...]] = {}
        self.partition: Any = None
        self.cut_variables: tuple[Variable, ...] = ()
        self.whole_results = False
        self.placements: dict[str, Any] = {}
        self.nodes: list[Node] = []
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        self.loss: Tensor | None = None
        self.sources: tuple[Tensor, ...] | None = None
        self.gradients: dict[str, Tensor] = {}
        self.losses: list[Tensor] = []
        self.loss_owners: list[Any] = []
        self.metric_updates: list[MetricUpdate] = []
        self._parameters: dict[int, Tensor] = {}
        self._assigned: dict[int, Tensor] = {}
        self._scopes: list[str] = []

    def __enter__(self) -> Graph:
        tracing.begin(self)
        return self

    def __exit__(self, *error: object) -> None:
        tracing.end()

    def check_open(self) -> None:
        """Raises ValueError where its tensors can no longer be used, as those of a loop's step outside of it."""

    def input(self, name: str, spec: Spec) -> Tensor:
        """A named input."""
        tensor = self.inputs[name] = self.tensor(spec, name)
        return tensor

    def tensor(self, spec: Spec, name: str, node: Node | None = None, index: int = 0) -> Tensor:
        """A tensor of a kind that is the graph's; see Tensor."""
        return Tensor(self, spec, name, node, index)

    def parameter(self, variable: Variable) -> Tensor:
        """The tensor that stands for a variable in this graph; the same one each time."""
        key = id(variable)
        if key not in self._parameters:
            tensor = Tensor(self, variable.spec, variable.path)
            tensor.variable = variable
            self._parameters[key] = tensor
        return self._parameters[key]

    def cut_parameter(self, variable: Variable, shape: tuple[int, ...]) -> Tensor:
        """The tensor that stands from now on for this process's part, of this shape, of a variable."""
        tensor = Tensor(self, Spec(shape, variable.dtype), variable.path)
        tensor.variable = variable
        self._parameters[id(variable)] = tensor
        return tensor

    @property
    def has_backward(self) -> bool:
        """Whether there is a loss to differentiate."""
        return self.loss is not None

    @property
    def in_layer(self) -> bool:
        """Whether a layer's call is being traced."""
        return bool(self._scopes)

    @property
    def parameters(self) -> list[Tensor]:
        """Tensors of the variables used, in order of first use."""
        return list(self._parameters.values())

    def constant(self, value: Any, dtype: str, shape: tuple[int, ...] | None = None) -> Tensor:
        """A tensor of a value; shape: by default the value's, but at least one axis."""
        claim(math.prod(np.shape(value)) * 8, f"a constant of shape {np.shape(value)}")
        array = dtypes.to_bits(value) if dtype == dtypes.BFLOAT16 else np.ascontiguousarray(value, dtype=dtype)
        array = array if shape is None else array.reshape(shape)
        tensor = Tensor(self, Spec(array.shape, dtype), "constant")
        tensor.constant = array
        return tensor

    def add_loss(self, owner: Any, loss: Tensor) -> None:
        """Adds the sum of a tensor to the total loss, which the layer `owner` wants."""
        self.losses.append(loss)
        self.loss_owners.append(owner)

    def update(self, metric: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Notes a call of a metric, for whoever runs the graph to make with the values."""
        check_none(f"{metric.name}.{method}()")
        self.metric_updates.append(MetricUpdate(metric, method, args, kwargs))

    def assign(self, variable: Variable, value: Any, sign: int | None) -> None:
        """variable = value, or += and -= by the sign: seen by what is traced later, done after each run.

        The gradient of what is read of a trained variable then is the variable's: a step trains what was assigned.
        """
        new = self.assigned(variable, value, sign)
        if variable.trainable:
            old = self.parameter(variable)
            self._assigned[id(variable)] = old + self.add(_STOP, [new - old])
        self.metric_updates = [each for each in self.metric_updates if each.metric is not variable]
        self.update(variable, "assign", (new,), {})

    def has_assigned(self, variable: Variable) -> bool:
        """Whether what was traced so far assigns to the variable."""
        return id(variable) in self._assigned

    def assigned(self, variable: Variable, value: Any, sign: int | None) -> Tensor:
        """A tensor of what is assigned, which is read in the variable's place from here on."""
        spec = variable.spec
        if sign is not None:
            old = self._as_tensor(variable, spec.dtype, _STOP)
            value = old + value if sign > 0 else old - value
        new = self.cast(self._as_tensor(value, spec.dtype, _STOP), spec.dtype)
        if new.shape != spec.shape and (new.constant is None or new.constant.size != 1 or spec.shape):
            raise ValueError(f"variable {variable.path!r}: expected shape {spec.shape}, got {new.shape}")
        if new.shape != spec.shape:
            new = self.constant(new.constant, spec.dtype, ())
        found: Any = self.add(_STOP, [new])
        self._assigned[id(variable)] = found
        return found

    def result(self, call: Any, name: str) -> Any:
        """What a metric gives, which is not known yet."""
        return Deferred(name)

    def add(self, op: Op, inputs: Sequence[Any]) -> Tensor | tuple[Tensor, ...]:
        """Adds a node; returns its output, or a tuple where it has several."""
        dtype = next((x.dtype for x in inputs if isinstance(x, (Tensor, Variable))), "float32")
        tensors = tuple(
            self._as_tensor(value, value.dtype.name if op.mixes_dtypes and isinstance(value, np.ndarray) else dtype, op)
            for value in inputs
        )
        given = ["" if is_weak(tensor) else tensor.dtype for tensor in tensors]
        if any(tensor.dtype == dtypes.BFLOAT16 for tensor in tensors) and not isinstance(op, (Cast, Scan)):
            wanted = read_as(op, [tensor.spec for tensor in tensors], list(map(is_weak, tensors)))
            tensors = tuple(map(self.cast, tensors, wanted))
        node = Node(self, op, tensors, "/".join(self._scopes))
        if all(map(is_weak, tensors)) and not isinstance(op, Cast) and not op.draws:
            for output in node.outputs:
                output.weak = True
        self.nodes.append(node)
        outputs = node.outputs
        if isinstance(op, TableOp):
            outputs = tuple(self.cast(output, op.given_dtype(output.dtype, given)) for output in outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def cast(self, tensor: Tensor, dtype: str) -> Tensor:
        """The tensor in a dtype."""
        if tensor.dtype == dtype:
            return tensor
        node = Node(self, Cast(dtype), (tensor,), "/".join(self._scopes))
        self.nodes.append(node)
        return node.outputs[0]

    def _as_tensor(self, value: Any, dtype: str, op: Op) -> Tensor:
        """An operand of the op; a value becomes a constant of this dtype."""
        if isinstance(value, Tensor):
            if value.graph is not self:
                value.graph.check_open()
                raise ValueError(f"{value} belongs to another graph; a layer kept a tensor of an earlier call")
            return value
        if isinstance(value, Variable):
            return self._assigned.get(id(value)) or self.parameter(value)
        keeps_shape = op.mixes_dtypes and isinstance(value, np.ndarray)
        return self.constant(value, dtype, value.shape if keeps_shape else None)

    def scope(self, name: str) -> _Scope:
        """A context in which nodes are named after a layer."""
        return _Scope(self, name)


class _Scope:
    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def __enter__(self) -> None:
        self.graph._scopes.append(self.name)

    def __exit__(self, *error: object) -> None:
        self.graph._scopes.pop()
