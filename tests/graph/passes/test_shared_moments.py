"""Statistics that convolutions gather and layers share."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.ops.base import Spec
from pydtconv.ops.convolution import Conv
from pydtconv.ops.moments import Moments
from pydtconv.ops.normalization import BatchNorm
from tests.graph.networks import NETWORKS, trace
from tests.graph.tables import rewrite, without


def of_kind(graph: Graph, kind):
    return [node for node in graph.nodes if isinstance(node.op, kind)]


def traced(make, training: bool = True) -> Graph:
    graph = Graph(training=training)
    with graph:
        x = graph.input("x", Spec((3, 8, 8, 6), "float64"))
        y = make(x, training)
        graph.outputs = {"y": y}
        if training:
            graph.loss = ops.Mean()(ops.Multiply()(y, y))
    rewrite(graph)
    return graph


def dense_block(x, training):
    for _ in range(4):
        new = layers.BatchNormalization()(x, training=training)
        new = layers.Conv2D(5, 3, padding="same", use_bias=False)(layers.ReLU()(new))
        x = layers.Concatenate()([x, new])
    return layers.BatchNormalization()(x, training=training)


def test_of_a_dense_block_are_found_once_for_each_channel():
    keras.config.set_floatx("float64")
    graph = traced(dense_block)
    assert all(node.op.given for node in of_kind(graph, BatchNorm))
    assert all(node.op.moments for node in of_kind(graph, Conv))
    assert [node.inputs[0] for node in of_kind(graph, Moments)] == [graph.inputs["x"]]


def test_are_not_wanted_in_inference_or_where_nothing_is_saved():
    keras.config.set_floatx("float64")
    graph = traced(dense_block, training=False)
    assert not any(node.op.given for node in of_kind(graph, BatchNorm))
    assert not of_kind(graph, Moments)
    graph = traced(lambda x, training: layers.BatchNormalization()(layers.ReLU()(x), training=training))
    assert not of_kind(graph, BatchNorm)[0].op.given
    graph = traced(lambda x, training: layers.BatchNormalization(trainable=False)(layers.Conv2D(4, 3)(x)))
    assert not of_kind(graph, Conv)[0].op.moments


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "plain"])
def test_networks_compute_the_same_without(name):
    keras.config.set_floatx("float64")
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(5, 12, 12, 3)), "y_true": rng.integers(0, 10, 5)}

    def results(*left_out):
        keras.utils.set_random_seed(3)
        graph = trace(NETWORKS[name](12, 3), name, 12, 5)
        memory = Memory()
        executor = Executor(build_plan(graph, passes=without(*left_out)), memory)
        for _ in range(2):
            found = executor.run(inputs)
        return of_kind(graph, BatchNorm), dict(found), memory.store.gradients.copy()

    shared = results()
    plain = results("shared-moments")
    assert any(node.op.given for node in shared[0])
    assert not any(node.op.given for node in plain[0])
    for key, value in plain[1].items():
        np.testing.assert_allclose(shared[1][key], value, rtol=1e-11)
    np.testing.assert_allclose(shared[2], plain[2], rtol=1e-8, atol=1e-11)
