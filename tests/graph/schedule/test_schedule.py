"""Random graphs of operators that take every liberty, against a reference that takes none."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.graph.memory.storage import Storage
from pydtconv.graph.schedule.steps import CopyStep
from pydtconv.ops.base import Spec
from tests.graph.toy import Join, Minus, Mix, Scale, Sum2, SumRelu, Tanh, Total, View, reference


def random_graph(rng: np.random.Generator, size: int, training: bool) -> Graph:
    """A graph of `size` random nodes on images (2, 3, 2, c), with every tensor a possible input of later nodes."""
    graph = Graph(training=training)
    with graph:
        pool = [graph.input("x", Spec((2, 3, 2, 4), "float64"))]
        weights: dict[int, list[Variable]] = {}
        for _ in range(size):
            recent = pool[-6:]
            x = recent[rng.integers(len(recent))]
            same = [t for t in recent if t.shape == x.shape]
            other = same[rng.integers(len(same))]
            kind = rng.integers(9)
            if kind == 0:
                pool.append(Scale(float(rng.uniform(0.5, 1.5)))(x))
            elif kind in (1, 2):
                c = x.shape[-1]
                known = weights.setdefault(c, [])
                if not known or rng.random() < 0.6:
                    known.append(Variable(rng.normal(size=c), dtype="float64", name=f"w{len(known)}"))
                pool.append(Mix()(x, known[rng.integers(len(known))]))
            elif kind == 3:
                pool.append(Sum2()(x, other))
            elif kind == 4:
                pool.append(SumRelu()(x, other))
            elif kind == 5:
                pool.append(Minus()(x, other))
            elif kind == 6:
                pool.append(Tanh()(x))
            elif kind == 7 and x.shape[-1] <= 24:
                y = recent[rng.integers(len(recent))]
                pool.append(Join()(x, y) if y.shape[-1] <= 24 else Join()(x, x))
            else:
                flat = View((2, 6, x.shape[-1]))(x)
                pool.append(View(x.shape)(Scale(1.1)(flat) if rng.random() < 0.5 else flat))
        tail = [Total()(t) for t in pool[-3:]]
        graph.outputs["last"] = pool[-1]
        graph.outputs["middle"] = pool[len(pool) // 2]
        graph.loss = graph.outputs["loss"] = Sum2()(Sum2()(tail[0], tail[1]), tail[2])
    return graph


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("size", [4, 12, 40])
def test_random_graph_equals_reference(seed: int, size: int) -> None:
    graph = random_graph(np.random.default_rng(seed), size, training=True)
    x = np.random.default_rng(seed + 1).normal(size=(2, 3, 2, 4))
    values, gradients = reference(graph, {"x": x})
    expected = {name: values[tensor] for name, tensor in graph.outputs.items()}
    parameters = [tensor for tensor in graph.parameters if tensor in gradients]
    memory = Memory()
    executor = Executor(build_plan(graph), memory)
    for _ in range(2):  # the second run finds the garbage of the first in the arena
        results = executor.run({"x": x})
        for name, value in expected.items():
            np.testing.assert_allclose(results[name], value, rtol=1e-9, atol=1e-12)
        assert set(executor.plan.gradient_order) == set(parameters)
        for tensor in parameters:
            found = memory.store.gradient_of(tensor.variable)
            np.testing.assert_allclose(found, gradients[tensor], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_random_graph_without_loss_equals_reference(seed: int) -> None:
    graph = random_graph(np.random.default_rng(seed), 25, training=False)
    graph.loss = None
    x = np.random.default_rng(seed).normal(size=(2, 3, 2, 4))
    values, _ = reference(graph, {"x": x})
    expected = {name: values[tensor] for name, tensor in graph.outputs.items()}
    results = Executor(build_plan(graph), Memory()).run({"x": x})
    for name, value in expected.items():
        np.testing.assert_allclose(results[name], value, rtol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_storages_that_live_at_the_same_time_do_not_overlap(seed: int) -> None:
    plan = build_plan(random_graph(np.random.default_rng(seed), 40, training=True))
    for i, a in enumerate(plan.storages):
        assert a.offset >= 0
        assert a.offset + a.nbytes <= plan.arena_bytes
        for b in plan.storages[:i]:
            together = a.first <= b.last and b.first <= a.last
            assert not (together and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes)


def test_a_loss_that_is_a_sum_of_a_number_and_a_function_of_it() -> None:
    x = Variable(np.ones((2, 3, 2, 4)), dtype="float64")
    graph = Graph(training=True)
    with graph:
        part = Total()(Scale(1.0)(x))
        graph.loss = graph.outputs["loss"] = Sum2()(part, Scale(3.0)(Scale(2.0)(part)))
    memory = Memory()
    executor = Executor(build_plan(graph), memory)
    for _ in range(2):
        executor.run({})
        np.testing.assert_allclose(memory.store.gradient_of(x), 7.0)


def dense_block(graph: Graph, layers: int) -> None:
    """x0; then x_k = concatenation of x_(k-1) and a mix of it, as in DenseNet."""
    x = Mix()(graph.input("x", Spec((2, 3, 2, 4), "float64")), Variable(np.ones(4), dtype="float64"))
    for _ in range(layers):
        c = x.shape[-1]
        x = Join()(x, Mix()(x, Variable(np.linspace(0.5, 1, c), dtype="float64")))
    graph.loss = graph.outputs["loss"] = Total()(x)


def test_nested_concatenations_copy_nothing() -> None:
    graph = Graph(training=True)
    with graph:
        dense_block(graph, 4)
    plan = build_plan(graph)
    assert not [step for step in plan.steps if isinstance(step, CopyStep) and step.node.op == Join()]
    forward = plan.steps[: plan.backward_start]
    buffers = {view.buffer for step in forward for view in step.y if isinstance(view.buffer, Storage)}
    assert len(buffers) == 2  # one block for all concatenations, one for the loss


def test_gradients_are_ready_in_order_and_once() -> None:
    graph = random_graph(np.random.default_rng(5), 40, training=True)
    plan = build_plan(graph)
    ready = [tensor for step in plan.steps for tensor in step.ready]
    assert ready == plan.gradient_order
    assert len(set(ready)) == len(ready)


def test_inputs_of_wrong_shape_and_name_are_refused() -> None:
    executor = Executor(build_plan(random_graph(np.random.default_rng(0), 4, training=True)), Memory())
    with pytest.raises(ValueError, match=r"input 'x': expected shape \(2, 3, 2, 4\), got \(2, 3\)"):
        executor.run({"x": np.zeros((2, 3))})
    with pytest.raises(ValueError, match=r"expected \['x'\], got \['z'\]"):
        executor.run({"z": np.zeros((2, 3, 2, 4))})
