"""Symbolic tensors and the nodes between them: what a model is, before a plan says how it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.variable import Variable
from pydtconv.kernels.base import Kernel
from pydtconv.kernels.registry import find
from pydtconv.ops.base import Op, Spec, outputs_of
from pydtconv.ops.operators import Operators


def current_graph() -> Graph | None:
    """The innermost graph that this thread is tracing, or None."""
    return tracing.current()


class Tensor(Operators):
    """The output of a node, a graph's input, or a parameter as seen in a graph.

    node is None for inputs, parameters and constants; variable is set for parameters, constant for constants.
    """

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

    def apply_op(self, op: Op, inputs: Sequence[Any]) -> Tensor | tuple[Tensor, ...]:
        return self.graph.add(op, inputs)

    def __repr__(self) -> str:
        return f"<Tensor {self.name} shape={self.shape} dtype={self.dtype}>"


class Node:
    """One application of an op.  scope says which layer it came from ("conv2d_1/..."); tables and traces show it.

    device: where it runs; that of the graph, until a pass says otherwise.
    """

    def __init__(self, graph: Graph, op: Op, inputs: tuple[Tensor, ...], scope: str) -> None:
        self.op = op
        self.inputs = inputs
        self.scope = scope
        self.device = graph.device
        self._found: tuple[Op, str, str, Kernel[Any]] | None = None
        specs = outputs_of(op, *(tensor.spec for tensor in inputs))
        self.name = f"{scope or op.name}#{len(graph.nodes)}"
        self.outputs = tuple(Tensor(graph, spec, f"{self.name}:{i}", self, i) for i, spec in enumerate(specs))

    @property
    def kernel(self) -> Kernel[Any]:
        """What runs the op on the device.  Raises MissingKernelError where there is nothing."""
        dtype = self.op.kernel_dtype(*(tensor.spec for tensor in self.inputs))
        found = self._found
        if found is None or found[0] is not self.op or found[1:3] != (self.device, dtype):
            found = self._found = (self.op, self.device, dtype, find(self.op, self.device, dtype))
        return found[3]

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.op}>"


def joins_channels(node: Node) -> bool:
    """Whether the node concatenates images along their channels: the plan does that by placing, not by its op."""
    return node.op.concatenates and node.op.axis in (-1, 3) and len(node.outputs[0].shape) == 4  # type: ignore[attr-defined]


@dataclass(frozen=True)
class CompileOptions:
    """What a graph is compiled for.

    variant: of convolution.  smallest_workspaces: take the algorithms with the smallest workspaces, where neither the
    layer nor the variant says which to take.  elides: whether a normalized image may be left out of memory.
    """

    variant: str = "AUTO"
    smallest_workspaces: bool = False
    elides: bool = True


class Graph:
    """Nodes in the order in which they were traced, which is an order in which they can run.

    training: whether layers were traced as in a training step.  device: where its nodes run.  outputs: named results;
    loss: the scalar to differentiate, or None.  The rest is what passes leave to the stages behind them:
    algorithms: of each convolution, by direction.  before_choice: its operator as it was before these were chosen.
    fused_reductions: nodes whose backward also computes the reductions of a batch normalization, and that.
    elided: tensors that are not materialized, and what is read instead of them.
    """

    def __init__(self, training: bool = False, device: str = "cpu") -> None:
        self.training = training
        self.device = device
        self.options = CompileOptions()
        self.algorithms: dict[Node, dict[str, str]] = {}
        self.before_choice: dict[Node, Op] = {}
        self.fused_reductions: dict[Node, Node] = {}
        self.elided: dict[Tensor, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        self.loss: Tensor | None = None
        self.losses: list[Tensor] = []
        self._parameters: dict[int, Tensor] = {}
        self._scopes: list[str] = []

    def __enter__(self) -> Graph:
        tracing.begin(self)
        return self

    def __exit__(self, *error: object) -> None:
        tracing.end()

    def input(self, name: str, spec: Spec) -> Tensor:
        """A named input."""
        tensor = Tensor(self, spec, name)
        self.inputs[name] = tensor
        return tensor

    def parameter(self, variable: Variable) -> Tensor:
        """The tensor that stands for a variable in this graph; the same one each time."""
        key = id(variable)
        if key not in self._parameters:
            tensor = Tensor(self, variable.spec, variable.path)
            tensor.variable = variable
            self._parameters[key] = tensor
        return self._parameters[key]

    @property
    def parameters(self) -> list[Tensor]:
        """Tensors of the variables used, in order of first use."""
        return list(self._parameters.values())

    def constant(self, value: Any, dtype: str) -> Tensor:
        array = np.ascontiguousarray(value, dtype=dtype)
        tensor = Tensor(self, Spec(array.shape, dtype), "constant")
        tensor.constant = array
        return tensor

    def add(self, op: Op, inputs: Sequence[Any]) -> Tensor | tuple[Tensor, ...]:
        """Adds a node; returns its output, or a tuple where it has several."""
        dtype = next((x.dtype for x in inputs if isinstance(x, (Tensor, Variable))), "float32")
        tensors = tuple(self._as_tensor(value, dtype) for value in inputs)
        node = Node(self, op, tensors, "/".join(self._scopes))
        self.nodes.append(node)
        return node.outputs[0] if len(node.outputs) == 1 else node.outputs

    def _as_tensor(self, value: Any, dtype: str) -> Tensor:
        if isinstance(value, Tensor):
            if value.graph is not self:
                raise ValueError(f"{value} belongs to another graph; a layer kept a tensor of an earlier call")
            return value
        if isinstance(value, Variable):
            return self.parameter(value)
        return self.constant(value, dtype)

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
