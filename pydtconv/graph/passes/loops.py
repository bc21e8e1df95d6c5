"""Loops: which gradients their bodies are planned for, and whether backward finds all steps or runs some again."""

from __future__ import annotations

import dataclasses
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.ops.body_loop import Scan


def plan_loops(graph: Graph) -> None:
    """Gives each loop the gradients that are wanted of it.

    `kept_bytes` bounds what loops keep of all steps, the first loops first; the others keep the states of some steps
    alone.  No bit depends on that.
    """
    budget = graph.options.kept_bytes
    required = RequiredGradients(graph)
    for node in _loops(graph):
        needs = required.of_inputs(node)
        op: Any = dataclasses.replace(
            node.op,
            needs=needs if any(needs) else (),
            training=graph.training,
            again=False,  # type: ignore[type-var]
        )
        node.op = op
        nbytes = _kept_bytes(node)
        if budget is not None and nbytes > budget and _runs_again(op):
            node.op = dataclasses.replace(op, again=True)
        elif budget is not None:
            budget -= min(nbytes, budget)


def kept_by_loops(graph: Graph) -> int:
    """Bytes that loops keep for backward which could run steps again instead."""
    return sum(_kept_bytes(node) for node in _loops(graph) if _runs_again(node.op))


def _loops(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if isinstance(node.op, Scan)]


def _runs_again(op: Any) -> bool:
    return bool(op.body.runs_again)


def _kept_bytes(node: Node) -> int:
    specs = [tensor.spec for tensor in node.inputs]
    return sum(spec.nbytes for name, spec in node.op.saves(*specs, training=True).items() if name == "kept")
