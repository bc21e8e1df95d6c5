"""Equal operators on the same tensors are one."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.graph.passes.common_subexpressions import merge_equal_nodes
from pydtconv.ops.base import Spec
from tests.graph.tables import without


def counted(graph: Graph, name: str) -> int:
    return sum(node.op.name == name for node in graph.nodes)


def cell(x, training):
    """As in NASNet: each branch has a ReLU of its own, and an image is pooled twice."""
    ends = [layers.SeparableConv2D(6, 3, padding="same")(layers.ReLU()(x)) for _ in range(3)]
    ends += [layers.AveragePooling2D(3, 1, padding="same")(x) for _ in range(2)]
    return layers.Concatenate()([*ends, layers.ReLU()(x)])


def traced(make, dtype="float64") -> Graph:
    keras.config.set_floatx(dtype)
    keras.utils.set_random_seed(3)
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((2, 7, 6, 5), dtype))
        y = make(layers.Conv2D(6, 3, padding="same")(x), True)
        graph.outputs = {"y": y}
        graph.loss = ops.Mean()(ops.Multiply()(y, y))
    return graph


def results(graph: Graph, *left_out: str):
    memory = Memory()
    executor = Executor(build_plan(graph, passes=without(*left_out)), memory)
    x = np.random.default_rng(1).normal(size=(2, 7, 6, 5))
    values = {name: value.copy() for name, value in executor.run({"x": x}).items()}
    return executor.plan.graph, values, memory.store.gradients.copy()


def test_branches_share_what_they_begin_with() -> None:
    graph, found, gradients = results(traced(cell))
    apart, expected, want = results(traced(cell), "common-subexpressions")
    assert [counted(graph, name) for name in ("relu", "averagepool")] == [1, 1]
    assert [counted(apart, name) for name in ("relu", "averagepool")] == [4, 2]
    np.testing.assert_array_equal(found["y"], expected["y"])
    np.testing.assert_allclose(gradients, want, rtol=1e-10, atol=1e-14)


def test_chains_of_equal_operators_are_one() -> None:
    graph = traced(lambda x, training: ops.Add()(*(ops.Activation("tanh")(ops.Activation("relu")(x)) for _ in "ab")))
    merge_equal_nodes(graph)
    assert counted(graph, "relu") == counted(graph, "tanh") == 1
    (total,) = (node for node in graph.nodes if node.op.name == "add")
    assert total.inputs[0] is total.inputs[1]


def test_results_keep_their_names() -> None:
    graph = Graph()
    with graph:
        x = graph.input("x", Spec((4, 3), "float64"))
        graph.outputs = {"one": ops.Activation("relu")(x), "other": ops.Activation("relu")(x)}
    values = Executor(build_plan(graph), Memory()).run({"x": np.arange(-6.0, 6).reshape(4, 3)})
    assert len(graph.nodes) == 1
    for name in ("one", "other"):
        np.testing.assert_array_equal(values[name], np.maximum(np.arange(-6.0, 6).reshape(4, 3), 0))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: ops.Dropout(0.5)(x),
        lambda x: ops.NumpyOp(np.tanh, label="numpy")(x),
        lambda x: layers.BatchNormalization()(x, training=True),
        lambda x: ops.Activation("relu")(ops.Multiply()(x, Variable(np.ones(3), dtype="float64"))),
    ],
    ids=["draws", "may have effects", "updates state", "reads other variables"],
)
def test_others_stay_apart(make) -> None:
    keras.config.set_floatx("float64")
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((4, 5, 3), "float64"))
        graph.outputs = {"y": ops.Add()(make(x), make(x))}
    before = len(graph.nodes)
    merge_equal_nodes(graph)
    assert len(graph.nodes) == before


def test_state_that_is_updated_is_read_where_it_is_read() -> None:
    layer = layers.BatchNormalization()
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((4, 3)))
        layer.build((None, 3))
        before = ops.Activation("tanh")(layer.moving_mean)
        y = layer(x, training=True)
        graph.outputs = {"before": before, "y": y, "after": ops.Activation("tanh")(layer.moving_mean)}
    merge_equal_nodes(graph)
    assert counted(graph, "tanh") == 2


def test_a_gradient_that_is_asked_for_is_that_of_one_of_them() -> None:
    x = keras.Variable(np.array([1.0, 2.0, -3.0]), dtype="float64")
    with keras.GradientTape() as tape:
        one, other = ops.relu(x), ops.relu(x)
        total = ops.sum(one * 2 + other * 5)
    np.testing.assert_array_equal(tape.gradient(total, one), [2, 2, 2])
