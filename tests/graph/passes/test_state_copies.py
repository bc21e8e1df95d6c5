"""State that backward reads is what forward has read, though another operator has changed it meanwhile."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.ops.base import Spec
from tests.graph.tables import without

X = np.random.default_rng(0).normal(size=(2, 7, 6, 3))


class Renormalized(layers.Layer):
    """Reads moving averages as they were before the normalization in it moves them, one through a view."""

    def build(self, shape):
        self.norm = layers.BatchNormalization(momentum=0.5)
        self.norm.build(shape)

    def call(self, x, training=None):
        y = ops.multiply(ops.tanh(x), self.norm.moving_variance)
        z = ops.divide(ops.square(x), ops.reshape(self.norm.moving_variance, (1, 1, -1)))
        return ops.add(ops.add(y, z), ops.multiply(ops.tanh(self.norm(x, training=training)), 0.1))


def traced() -> tuple[Graph, layers.Layer]:
    keras.config.set_floatx("float64")
    keras.utils.set_random_seed(3)
    graph, first = Graph(training=True), layers.Conv2D(4, 3, padding="same")
    with graph:
        y = Renormalized()(first(graph.input("x", Spec(X.shape, "float64"))), training=True)
        graph.loss = graph.outputs["loss"] = ops.Mean()(ops.Multiply()(y, y))
    return graph, first


def loss_of(kernel: np.ndarray | None) -> float:
    graph, first = traced()
    if kernel is not None:
        first.kernel.assign(kernel)
    return float(Executor(build_plan(graph), Memory()).run({"x": X})["loss"])


@pytest.mark.parametrize("recompute", ["stored", "cheap", "every"])
def test_gradients_are_those_of_differences(recompute: str) -> None:
    graph, first = traced()
    chosen = {"stored": (), "cheap": None, "every": [node.outputs[0] for node in graph.nodes]}[recompute]
    memory = Memory()
    Executor(build_plan(graph, recompute=chosen), memory).run({"x": X})
    assert memory.store is not None
    found, kernel = memory.store.gradient_of(first.kernel), first.kernel.numpy()
    for place in (0, 0, 0, 0), (1, 2, 1, 3), (2, 1, 2, 2):
        step = np.zeros_like(kernel)
        step[place] = 1e-6
        difference = (loss_of(kernel + step) - loss_of(kernel - step)) / 2e-6
        assert found[place] == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_what_is_not_read_again_or_not_changed_is_not_copied() -> None:
    graph, _ = traced()
    copies = [node for node in build_plan(graph).graph.nodes if node.op.name == "linear"]
    assert len(copies) == 2
    graph, _ = traced()
    assert not [
        node for node in build_plan(graph, passes=without("state-copies")).graph.nodes if node.op.name == "linear"
    ]
    with Graph(training=True) as graph:
        norm = layers.BatchNormalization()
        y = norm(graph.input("x", Spec(X.shape, "float64")), training=True)
        y = ops.multiply(ops.tanh(y), norm.moving_variance)  # after it has moved
        graph.loss = graph.outputs["loss"] = ops.Mean()(y)
    assert "linear" not in {node.op.name for node in build_plan(graph).graph.nodes}
