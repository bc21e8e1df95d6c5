"""From a Python function of one step to a `Scan` of the graph that is being traced."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pydtconv import config, hooks, ops, tree
from pydtconv.dtypes import BFLOAT16, FLOATING
from pydtconv.graph.ir.body import BodyGraph
from pydtconv.graph.ir.graph import Graph, Tensor, current_graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.runtime.body import Body
from pydtconv.ops.base import Spec
from pydtconv.ops.body_loop import Scan

#: (states, x) -> the states after the step, and its results
StepFunction = Callable[[Any, Any], tuple[Any, Any]]


class _Unrolls(threading.local):
    """keeps: which operators of loops stay while this thread leaves their steps in the graph; None: it does not."""

    keeps: Callable[[Any], bool] | None = None


_unrolls = _Unrolls()


@contextmanager
def unrolled(keeps: Callable[[Any], bool]) -> Iterator[None]:
    """While loops are traced as the operators of all their steps, one behind the other.

    keeps: whether a `Recurrence` stays the operator that it is.
    """
    before, _unrolls.keeps = _unrolls.keeps, keeps
    try:
        yield
    finally:
        _unrolls.keeps = before


def is_unrolled(op: Any) -> bool:
    """Whether the steps of this recurrence are to be traced one by one."""
    return _unrolls.keeps is not None and not _unrolls.keeps(op)


class _NoBody(Exception):
    """What a step does is no body of a loop."""


def traced_loop(
    function: StepFunction,
    states: Any,
    xs: Any,
    steps: int,
    *,
    axis: int = 0,
    backwards: bool = False,
    aligned: bool = True,
    stacked: bool = True,
    mask: Any = None,
    zero_output: bool = False,
) -> tuple[Any, Any] | None:
    """The last states and the results of all steps, in structures as the function's; None where there is no loop.

    xs: sequences, or None.  aligned, stacked: see `Scan`.  mask: of samples and steps, as the sequences are; where it
    is 0 a step leaves states as they are, and the result is that of the step before, 0 at first, or always 0 with
    zero_output.

    There is no loop where nothing is traced, on other devices than the CPU, and where Python code of a step asks for
    values, changes variables, or gives states of other shapes or dtypes: such code runs for each step.
    """
    graph = current_graph()
    leaves = [*tree.flatten(states), *tree.flatten(xs)]
    if graph is None or graph.device != "cpu" or steps < 2 or _unrolls.keeps is not None:
        return None
    if not any(isinstance(x, Tensor) for x in leaves):
        return None
    try:
        return _traced(graph, function, states, xs, steps, axis, backwards, aligned, stacked, mask, zero_output)
    except Exception:  # what is wrong with the code itself is so, too, where it runs for each step
        return None


hooks.traced_loop.fill(traced_loop)


def _traced(
    graph: Graph,
    function: StepFunction,
    states: Any,
    xs: Any,
    steps: int,
    axis: int,
    backwards: bool,
    aligned: bool,
    stacked: bool,
    mask: Any,
    zero_output: bool,
) -> tuple[Any, Any]:
    flat_states, flat_xs = tree.flatten(states), [x for x in (mask, *tree.flatten(xs)) if x is not None]
    dtype = next((x.dtype for x in (*flat_states, *flat_xs) if _is_float(x)), config.floatx())
    flat_states, flat_xs = ([_tensor(graph, x, dtype) for x in each] for each in (flat_states, flat_xs))
    if any(x.shape[axis] != steps for x in flat_xs):
        raise _NoBody
    body = BodyGraph(graph)
    with body:
        parts: list[Any] = [
            body.input(f"x{i}", Spec((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)) for i, x in enumerate(flat_xs)
        ]
        before: list[Any] = [body.input(f"s{i}", x.spec) for i, x in enumerate(flat_states)]
        given = parts if mask is None else parts[1:]
        x = None if xs is None else tree.pack_sequence_as(xs, given)
        new, results = function(tree.pack_sequence_as(states, before), x)
        after = [_like(body, old, each) for old, each in zip(before, tree.flatten(new), strict=True)]
        ys = [_inside(body, y, dtype) for y in tree.flatten(results) if y is not None]
        held: list[int] = []
        if mask is not None:
            after, ys, held = _masked(body, ops.cast(parts[0], "bool"), before, after, ys, zero_output)
    if body.metric_updates or body.losses or (graph.records and body.read_values):
        raise _NoBody
    zeros = len(after) - len(flat_states)
    shared = list(body.shared.values())
    body.inputs = {tensor.name: tensor for tensor in (*parts, *before, *(tensor for _, tensor in shared))}
    body.outputs = {f"y{i}": tensor for i, tensor in enumerate((*after, *ys))}
    op = Scan(
        Body(body, len(flat_xs), len(after)), steps, len(flat_xs), len(flat_states), axis, backwards, aligned, stacked,
        zeros, mask is not None, tuple(held),
    )  # fmt: skip
    found = graph.add(op, [*flat_xs, *flat_states, *(value for value, _ in shared)])
    outputs = found if isinstance(found, tuple) else (found,)
    last, made = outputs[: len(flat_states)], outputs[len(flat_states) :]
    results = tree.pack_sequence_as(results, list(made)) if made else None
    return tree.pack_sequence_as(states, list(last)), results


def _is_float(x: Any) -> bool:
    return isinstance(x, (Tensor, Variable)) and x.dtype in FLOATING


def _tensor(graph: Graph, value: Any, dtype: str) -> Any:
    """A tensor or a variable as it is; an array as a constant, of floats in this dtype."""
    if isinstance(value, (Tensor, Variable)):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "fbiu" and array.dtype.name != BFLOAT16:
        raise _NoBody
    kind = dtype if array.dtype.kind == "f" else "int32" if isinstance(value, int) else array.dtype.name
    return graph.constant(array, kind, array.shape)


def _inside(body: BodyGraph, value: Any, dtype: str) -> Tensor:
    """A result of a step as a tensor of the body."""
    value = _tensor(body, value, dtype)
    return value if isinstance(value, Tensor) and value.graph is body else body.shared_with(value)


def _like(body: BodyGraph, state: Tensor, value: Any) -> Tensor:
    """A state after a step, in the dtype of that before it: float32 and bfloat16 are cast to each other."""
    value = _inside(body, value, state.dtype)
    dtypes = {state.dtype, value.dtype}
    if value.shape != state.shape or not (len(dtypes) == 1 or dtypes == {"float32", BFLOAT16}):
        raise _NoBody
    return body.cast(value, state.dtype)


def _masked(
    body: BodyGraph, kept: Any, before: list[Any], after: list[Any], ys: list[Any], zero_output: bool
) -> tuple[list[Any], list[Any], list[int]]:
    """The states and results of a step of which some samples are masked; which states hold results of the step before.

    Those are further states.
    """

    def chosen(a: Any, b: Any) -> Any:
        return ops.where(ops.reshape(kept, (-1, *[1] * (len(a.shape) - 1))), a, b)

    after = [chosen(new, old) for new, old in zip(after, before, strict=True)]
    if zero_output:
        return after, [chosen(y, ops.zeros_like(y)) for y in ys], [-1] * len(ys)
    for i, y in enumerate(ys):
        last = body.input(f"y{i}", y.spec)
        before.append(last)
        ys[i] = chosen(y, last)
        after.append(ys[i])
    return after, ys, list(range(len(after) - len(ys), len(after)))
