"""Gradients pulled back through nodes of a recording, by the rules of their operators."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydtconv import ops
from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.loops.derivatives import differentiable_inputs
from pydtconv.ops import kinds

#: (node, inputs, y, dy) -> a gradient for each input, None where there is none.  Of an operator with several outputs
#: y and dy are lists, dy with None for an output without a gradient.
Rule = Callable[[Node, Sequence[Any], Any, Any], Sequence[Any]]

#: by the function of the table, or the operator's class where it has no gradient and no formula of its own
RULES: dict[str, Rule] = {}


def refused(name: str, reason: str = "") -> NotImplementedError:
    """The error of what cannot be differentiated again."""
    told = f": {reason}" if reason else ""
    return NotImplementedError(
        f"GradientTape inside another tape's block: {name}: its gradient cannot be differentiated again{told}"
    )


def key_of(node: Node) -> str:
    """The name under which a node's rule is kept."""
    return str(getattr(node.op, "function", type(node.op).__name__))


def pull(recording: Any, nodes: Iterable[Node], gradients: dict[Tensor, Any], wanted: set[Tensor]) -> None:
    """Adds the gradients of what is wanted, from the last node to the first.  Raises NotImplementedError."""
    for node in nodes:
        outputs = node.outputs[: len(node.outputs) - node.op.auxiliary]
        dys = [gradients.get(output) for output in outputs]
        sources = [x for x in differentiable_inputs(node) if x in wanted]
        if not sources or all(dy is None for dy in dys):
            continue
        rule = rule_of(node)
        stage = recording.stage_of_place(recording.place(node))
        x = [recording.handle(recording.former.as_read(each, stage)) for each in node.inputs]
        ys = [recording.handle(output) for output in outputs]
        handles = [dy if dy is None or hasattr(dy, "tensor") else recording.handle(dy) for dy in dys]
        found = rule(node, x, ys, handles) if len(ys) > 1 else rule(node, x, ys[0], handles[0])
        for tensor, gradient in zip(node.inputs, found, strict=True):
            if tensor in sources and gradient is not None:
                contribute(gradients, tensor, gradient)


def contribute(gradients: dict[Tensor, Any], tensor: Tensor, gradient: Any) -> None:
    """Adds to the gradient of a tensor."""
    known = gradients.get(tensor)
    gradients[tensor] = gradient if known is None else ops.add(known, gradient)


def rule_of(node: Node) -> Rule:
    """The rule of a node's operator.  Raises NotImplementedError that names it where there is none."""
    op = node.op
    rule = RULES.get(key_of(node))
    if rule is None and op.gradient is None and op.formula is None:
        raise refused(op.name, op.lacks.get("gradient", ""))
    return rule or _of_operator


def _of_operator(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    """By the operator's own gradient or formula, which are those of it without a fused activation and a residual."""
    op: Any = node.op
    if op.activation is not None and op.activation not in kinds.FUSABLE:
        return composed(_unfused)(node, x, y, dy)
    if op.activation is not None:
        given = kinds.given(op.activation, getattr(op, "alpha", None))
        dy = kinds.ROWS[op.activation].gradient(ops, y, y, dy, *given)
    inputs = x[: len(x) - op.residual]
    found = NotImplemented if op.gradient is None else op.gradient(inputs, y, dy)
    if found is NotImplemented:
        found = composed(type(op).formula)(node, inputs, y, dy)
    return [*found, *[dy] * op.residual]


def _unfused(op: Any, *x: Any) -> Any:
    return ops.Activation(op.activation)(dataclasses.replace(op, activation=None)(*x))


def composed(formula: Callable[..., Any]) -> Rule:
    """The rule of an operator that formula(op, *inputs) makes of operators with rules."""

    def rule(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        recording = x[0].graph
        start = len(recording.nodes)
        made = formula(node.op, *x)
        several = isinstance(y, list)
        gradients: dict[Tensor, Any] = {}
        for result, gradient in zip(made if several else [made], dy if several else [dy], strict=True):
            if gradient is not None:
                contribute(gradients, recording.inner(result), gradient)
        nodes = recording.nodes[start:]
        inputs = [recording.inner(each) for each in x]
        wanted = set(inputs)
        for each in nodes:
            if not wanted.isdisjoint(differentiable_inputs(each)):
                wanted.update(each.outputs)
        pull(recording, reversed(nodes), gradients, wanted)
        return [gradients.pop(each, None) for each in inputs]  # once for a tensor that is several inputs

    return rule
