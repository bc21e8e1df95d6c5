"""What a step of a loop computes: a graph that was traced once, with its plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import config, ops
from pydtconv.dtypes import BFLOAT16, from_bits
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.runtime.body_plan import BodyPlan
from pydtconv.graph.runtime.kept import key_of
from pydtconv.graph.runtime.loop import bind_backward, bind_forward
from pydtconv.kernels.base import Call, Pass
from pydtconv.ops.base import Spec
from pydtconv.ops.body_loop import Scan
from pydtconv.support.last_used import LastUsed

#: plans of bodies, by what they compute; a loop with other steps has the same
PLANS: LastUsed[BodyPlan] = LastUsed(64)


class Body:
    """A graph whose inputs are the sequences' parts of a step, states, and what all steps read alike.

    Its outputs are the states after the step, then its results.  Bodies are equal that compute the same.
    """

    def __init__(self, graph: Graph, sequences: int, states: int) -> None:
        self.graph = graph
        specs = [tensor.spec for tensor in graph.inputs.values()]
        outputs = [tensor.spec for tensor in graph.outputs.values()]
        self.sequences, self.states = specs[:sequences], specs[sequences : sequences + states]
        self.shared = specs[sequences + states :]
        self.results = outputs[states:]
        self.draws = any(node.op.draws for node in graph.nodes)
        places = {tensor: i for i, tensor in enumerate(list(graph.inputs.values())[sequences + states :])}
        updated = [node.inputs[i] for node in graph.nodes for i in node.op.updates if i < len(node.inputs)]
        self.updates = tuple(dict.fromkeys(places[tensor] for tensor in updated if tensor in places))
        #: whether a step may run twice: with the same numbers, and no effects
        self.runs_again = not (self.draws or self.updates) and all(node.op.replayable for node in graph.nodes)
        self._key = key_of(graph), sequences, states
        self._plans: dict[Any, BodyPlan] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<Body of {len(self.graph.nodes)} nodes>"

    def plan(self, needs: tuple[bool, ...], training: bool) -> BodyPlan:
        """The plan of a step.  needs: see `Scan`."""
        key = needs, training
        if key not in self._plans:
            whole = self._key, key, config.of_kernels()
            found = PLANS.get(whole)
            if found is None:
                found = BodyPlan(self, needs, training)
                PLANS.put(whole, found)
            self._plans[key] = found
        return self._plans[key]

    def copy(self, training: bool) -> Graph:
        """The graph, which a plan may change."""
        graph = Graph(training)
        graph.outer = self.graph
        copies = {tensor: graph.input(name, tensor.spec) for name, tensor in self.graph.inputs.items()}

        def of(tensor: Tensor) -> Tensor:
            if tensor not in copies:
                copies[tensor] = Tensor(graph, tensor.spec, tensor.name)
                copies[tensor].constant = tensor.constant
            return copies[tensor]

        for node in self.graph.nodes:
            copy = Node(graph, node.op, tuple(map(of, node.inputs)), node.scope)
            graph.nodes.append(copy)
            copies.update(zip(node.outputs, copy.outputs, strict=True))
        graph.outputs = {name: of(tensor) for name, tensor in self.graph.outputs.items()}
        return graph

    def bind_forward(self, op: Scan, p: Pass) -> Call:
        """Binds the forward pass of a loop with this body."""
        return bind_forward(op, p)

    def bind_backward(self, op: Scan, p: Pass) -> Call:
        """Binds its backward pass."""
        return bind_backward(op, p)

    def cost(self, direction: str) -> tuple[int, int]:
        """Arithmetic of a step: flops, and the fewest multiplications."""
        costs = [
            cost
            for node in self.graph.nodes
            for cost in node.op.cost(direction, *(tensor.spec for tensor in node.inputs)).values()
        ]
        return sum(cost.flops for cost in costs), sum(cost.multiplications for cost in costs)

    def unrolled(self, op: Scan, inputs: Sequence[Any]) -> Any:
        """The loop as the operators of all its steps.  Raises NotImplementedError where they draw numbers."""
        if self.draws:
            raise NotImplementedError(f"{op.name}: a body that draws random numbers cannot be differentiated again")
        xs, shared = inputs[: op.sequences], inputs[op.given :]
        states = [*inputs[op.sequences : op.given], *(_zeros(spec) for spec in self.states[op.states :])]
        results: list[Sequence[Any]] = []
        for t in reversed(range(op.steps)) if op.backwards else range(op.steps):
            parts = [ops.get_item(x, (*[slice(None)] * op.axis, t)) for x in xs]
            found = self._step([*parts, *states, *shared])
            states = found[: len(states)]
            results.append(found[len(states) :])
        ys = results[-1]
        if op.stacked:
            results = results[::-1] if op.backwards and op.aligned else results
            ys = [ops.stack(list(each), axis=op.axis) for each in zip(*results, strict=True)]
        outputs = (*states[: op.states], *ys)
        return outputs if len(outputs) > 1 else outputs[0]

    def _step(self, inputs: Sequence[Any]) -> list[Any]:
        values: dict[Tensor, Any] = dict(zip(self.graph.inputs.values(), inputs, strict=True))

        def of(tensor: Tensor) -> Any:
            if tensor.constant is not None:
                return from_bits(tensor.constant) if tensor.dtype == BFLOAT16 else tensor.constant
            return values[tensor]

        for node in self.graph.nodes:
            found = node.op(*map(of, node.inputs))
            values.update(zip(node.outputs, found if isinstance(found, tuple) else (found,), strict=True))
        return [of(tensor) for tensor in self.graph.outputs.values()]


def _zeros(spec: Spec) -> Any:
    return ops.zeros(spec.shape, dtype=spec.dtype)
