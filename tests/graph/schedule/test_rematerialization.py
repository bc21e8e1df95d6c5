"""Recomputation: random graphs with random tensors recomputed, networks bit for bit, and what a plan says of it."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.graph.schedule.steps import ForwardStep, RecomputeStep
from pydtconv.ops.base import Spec
from tests.graph.networks import NETWORKS, trace
from tests.graph.schedule.test_schedule import random_graph
from tests.graph.tables import rewrite, without
from tests.graph.toy import reference
from tests.marks import slow


@pytest.mark.parametrize("seed", [*range(12), *map(slow, range(12, 80))])
@pytest.mark.parametrize("size", [4, 12, 40])
def test_random_graph_with_random_tensors_recomputed_equals_reference(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, size, training=True)
    x = rng.normal(size=(2, 3, 2, 4))
    values, gradients = reference(graph, {"x": x})
    share = rng.choice([0.2, 0.5, 1.0])
    chosen = [node.outputs[0] for node in graph.nodes if rng.random() < share]
    memory = Memory()
    executor = Executor(build_plan(graph, recompute=chosen), memory)
    for _ in range(2):
        results = executor.run({"x": x})
        for name, tensor in graph.outputs.items():
            np.testing.assert_allclose(results[name], values[tensor], rtol=1e-9, atol=1e-12)
        for tensor in executor.plan.gradient_order:
            found = memory.store.gradient_of(tensor.variable)
            np.testing.assert_allclose(found, gradients[tensor], rtol=1e-9, atol=1e-9)


def test_random_graphs_recompute_chains_and_concatenations() -> None:
    """The graphs above hold what is to be tested: values recomputed from recomputed ones, and slices."""
    chained = joined = over = 0
    for seed in range(30):
        graph = random_graph(np.random.default_rng(seed), 40, training=True)
        plan = build_plan(graph, recompute=[node.outputs[0] for node in graph.nodes])
        steps = [step for step in plan.steps if isinstance(step, RecomputeStep)]
        buffers = {step.y[0].buffer for step in steps}
        chained += any(view is not None and view.buffer in buffers for step in steps for view in step.x)
        joined += any(step.y[0].is_slice for step in steps)
        over += any(view is not None and view.same_place(step.y[0]) for step in steps for view in step.x)
    assert min(chained, joined, over) > 5


def run(graph: Graph, recompute, inputs, steps: int = 2):
    """Outputs, gradients and state after some steps of the graph."""
    memory = Memory()
    memory.state.seed = 7
    executor = Executor(build_plan(graph, recompute=recompute), memory)
    for _ in range(steps):
        found = executor.run(inputs)
    assert memory.store is not None
    state = [t.variable.value.copy() for t in graph.parameters if t.variable is not None and not t.variable.trainable]
    return {name: value.copy() for name, value in found.items()}, memory.store.gradients.copy(), state, executor.plan


@pytest.mark.parametrize("name", [name if name in ("plain", "residual") else slow(name) for name in NETWORKS])
def test_network_has_the_bits_of_the_one_that_stores_everything(name: str) -> None:
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(8, 32, 32, 3)), "y_true": rng.integers(0, 10, 8)}

    def results(which: str):
        keras.utils.set_random_seed(3)
        graph = trace(NETWORKS[name](32, 8), name, 32, 8)
        rewrite(graph)
        every = [node.outputs[0] for node in graph.nodes]
        return run(graph, {"stored": (), "cheap": None, "every": every}[which], inputs)

    stored, cheap, every = (results(which) for which in ("stored", "cheap", "every"))
    for other in cheap, every:
        for key, value in stored[0].items():
            np.testing.assert_array_equal(other[0][key], value)
        np.testing.assert_array_equal(other[1], stored[1])
        for a, b in zip(other[2], stored[2], strict=True):
            np.testing.assert_array_equal(a, b)
    assert not stored[3].recomputed
    assert len(every[3].recomputed) > len(cheap[3].recomputed)
    if name != "plain":
        between = [result[3].live_bytes()[result[3].backward_start] for result in (cheap, stored)]
        assert between[0] < 0.7 * between[1]


def test_mask_of_a_recomputed_dropout_and_pooling_are_those_of_forward() -> None:
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(8, 16, 16, 3)), "y_true": rng.integers(0, 10, 8)}

    def results(recompute):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((16, 16, 3)), layers.Conv2D(16, 3)])
        model.add(layers.Dropout(0.4))
        model.add(layers.MaxPooling2D(3, 1, padding="same"))
        model.add(layers.Conv2D(8, 1, activation="elu"))
        model.add(layers.SpatialDropout2D(0.3))
        model.add(layers.GlobalAveragePooling2D())
        model.add(layers.Dense(10))
        graph = trace(model, "dense", 16, 8)
        rewrite(graph)
        return run(graph, recompute(graph), inputs)

    stored = results(lambda graph: ())
    every = results(lambda graph: [node.outputs[0] for node in graph.nodes])
    names = {node.op.name for node in every[3].recomputed}
    assert {"dropout", "maxpool"} <= names
    np.testing.assert_array_equal(every[1], stored[1])
    forward = [step for step in every[3].steps if isinstance(step, ForwardStep)]
    saved = [step.saved for step in forward if step.node.op.name == "maxpool"]
    assert saved == [{}]  # the places of the maxima are found again


def test_pooling_is_computed_again_once_though_an_addition_overwrites_it() -> None:
    """As in Xception, whose blocks add a strided convolution to what is pooled."""
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(8, 16, 16, 3)), "y_true": rng.integers(0, 10, 8)}

    def results(recompute):
        keras.utils.set_random_seed(3)
        image = keras.Input((16, 16, 3))
        first = layers.Conv2D(32, 3, padding="same")(image)
        pooled = layers.MaxPooling2D(3, 2, padding="same")(first)
        total = layers.Add()([pooled, layers.BatchNormalization()(layers.Conv2D(32, 1, 2)(first))])
        last = layers.GlobalAveragePooling2D()(layers.Conv2D(8, 3)(total))
        graph = trace(keras.Model(image, layers.Dense(10)(last)), "block", 16, 8)
        rewrite(graph)
        names = ("maxpool", "add")
        return run(graph, [node.outputs[0] for node in graph.nodes if node.op.name in names and recompute], inputs)

    stored, again = results(False), results(True)
    np.testing.assert_array_equal(again[1], stored[1])
    steps = [step for step in again[3].steps if isinstance(step, RecomputeStep)]
    assert sorted(step.node.op.name for step in steps) == ["add", "maxpool"]
    pooling, addition = sorted(steps, key=lambda step: step.node.op.name, reverse=True)
    assert pooling.y[0].same_place(addition.y[0])


def test_operators_that_may_not_run_twice_are_stored() -> None:
    calls = []

    def forward(x):
        calls.append(1)
        return np.tanh(x)

    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((4, 3), "float64"))
        w = Variable(np.ones((3, 3)), dtype="float64")
        y = ops.NumpyOp(forward, lambda dy, x, y: dy * (1 - y * y))(ops.matmul(x, w))
        graph.loss = graph.outputs["loss"] = ops.sum(y * y)
    plan = build_plan(graph, recompute=[node.outputs[0] for node in graph.nodes])
    assert "numpy" not in {node.op.name for node in plan.recomputed}
    Executor(plan, Memory()).run({"x": np.ones((4, 3))})
    assert len(calls) == 1


def test_table_says_what_is_recomputed() -> None:
    plan = build_plan(trace(NETWORKS["dense"](32, 8), "dense", 32, 8), passes=without("normalized-prologue"))
    lines = [line for line in str(plan).splitlines() if line.endswith("recomputed")]
    assert len(lines) == len(plan.recomputed) > 0
    assert all("batchnorm" in line for line in lines)


def test_rows_of_residual_blocks_are_broken() -> None:
    """Blocks that depend on each other are not recomputed from the first one on: some are stored in between."""
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, padding="same")(inputs)
    for _ in range(12):
        x = layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(x))])
        x = layers.ReLU()(x)
    model = keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    plan = build_plan(trace(model, "residual", 32, 2))
    adds = [node for node in plan.graph.nodes if node.op.name == "add"]
    again = [node in plan.recomputed for node in adds]
    assert 6 <= sum(again) < len(again)


@pytest.mark.parametrize(
    ("filters", "pixels", "batch", "again"),
    [
        (64, 3, 16, True),
        (64, 3, 15, False),  # less than 4 MiB
        (64, 7, 16, False),  # much arithmetic
        (5, 1, 256, False),  # little more than it reads
    ],
)
def test_first_layers_are_recomputed_where_that_is_little_work(
    filters: int, pixels: int, batch: int, again: bool
) -> None:
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(batch, 32, 32, 3)), "y_true": rng.integers(0, 10, batch)}

    def results(recompute):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((32, 32, 3))])
        model.add(layers.Conv2D(filters, pixels, padding="same", activation="relu"))
        model.add(layers.Conv2D(16, 3))
        model.add(layers.GlobalAveragePooling2D())
        model.add(layers.Dense(10))
        graph = trace(model, "dense", 32, batch)
        rewrite(graph)
        return run(graph, recompute, inputs)

    stored, cheap = results(()), results(None)
    np.testing.assert_array_equal(cheap[1], stored[1])
    assert [node.op.name for node in cheap[3].recomputed] == ["conv"] * again
    nbytes = batch * 32 * 32 * filters * 4
    between = [plan.live_bytes()[plan.backward_start] for plan in (stored[3], cheap[3])]
    assert between[0] - between[1] == (nbytes if again else 0)


def test_first_layers_in_a_concatenation_that_is_kept_are_not_recomputed() -> None:
    inputs = keras.Input((32, 32, 3))
    first = layers.Conv2D(64, 3, padding="same")(inputs)
    second = layers.Conv2D(16, 3, padding="same")(layers.BatchNormalization()(first))
    third = layers.Conv2D(16, 3, padding="same")(layers.BatchNormalization()(layers.Concatenate()([first, second])))
    model = keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(third)))
    plan = build_plan(trace(model, "residual", 32, 16))
    assert "conv" not in {node.op.name for node in plan.recomputed}
