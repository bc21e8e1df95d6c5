"""The graph of a loop's body, while Python code is traced into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv.dtypes import FLOATING
from pydtconv.graph.ir.graph import Graph, Node, Tensor, is_weak
from pydtconv.graph.ir.variable import Variable
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.shape import Cast


class _Unknown(Tensor):
    """An integer or truth value of a step, while the step is traced: code that looks it up in a dict asks for it."""

    def __hash__(self) -> int:
        if self._is_traced:
            self._number()
        return super().__hash__()


class BodyGraph(Graph):
    """A graph inside of another one, which has tensors of that, and variables, as inputs.

    What a step computes of these alone is the same in all steps: it goes into the graph outside.  But casts stay: those
    of weights to bfloat16 are apart, so that gradients are added in float32.
    shared: what is read of outside, as it is there, with its input here.
    """

    closed = False

    def __init__(self, outer: Graph) -> None:
        super().__init__(outer.training, outer.device)
        self.outer, self.runs_once = outer, outer.runs_once
        self.read_values = []
        self.shared: dict[int, tuple[Any, Tensor]] = {}
        self._scopes = list(outer._scopes)

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.closed = True

    def check_open(self) -> None:
        if self.closed:
            raise ValueError(
                "a tensor of one step of a loop was used after the loop, whose results have all steps: expected those, "
                "or unroll=True, with which each step has tensors of its own"
            )

    def add(self, op: Op, inputs: Sequence[Any]) -> Any:
        self.check_open()
        outside = not any(isinstance(x, Tensor) and x.graph is self for x in inputs)
        if outside and not (op.draws or op.updates or isinstance(op, Cast)):
            assert self.outer is not None
            return self.outer.add(op, inputs)
        return super().add(op, inputs)

    def tensor(self, spec: Spec, name: str, node: Node | None = None, index: int = 0) -> Tensor:
        return (Tensor if spec.dtype in FLOATING else _Unknown)(self, spec, name, node, index)

    def parameter(self, variable: Variable) -> Tensor:
        return self.shared_with(variable)

    def _as_tensor(self, value: Any, dtype: str, op: Op) -> Tensor:
        if isinstance(value, Variable) or (isinstance(value, Tensor) and value.graph is not self):
            return self.shared_with(value)
        return super()._as_tensor(value, dtype, op)

    def shared_with(self, value: Any) -> Tensor:
        """The input that stands for a variable, or a tensor of a graph around."""
        around, graphs = self.outer, []
        while around is not None:
            graphs.append(around)
            around = around.outer
        if isinstance(value, Tensor) and not any(value.graph is each for each in graphs):
            raise ValueError(f"{value} belongs to another graph; a layer kept a tensor of an earlier call")
        key = id(getattr(value, "tensor", value))
        if key not in self.shared:
            tensor = self.input(f"w{len(self.shared)}", value.spec)
            tensor.weak = isinstance(value, Variable) or is_weak(value)
            self.shared[key] = value, tensor
        return self.shared[key][1]
