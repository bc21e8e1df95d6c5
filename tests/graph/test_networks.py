"""Whole networks: values and gradients against PyTorch from equal weights, whatever has been fused and placed."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import ops
from pydtconv.conv import VARIANTS
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.graph.schedule.steps import CopyStep
from pydtconv.ops.base import Spec
from tests.graph.networks import NETWORKS, trace

torch_graph = pytest.importorskip("tests.torch_graph", reason="PyTorch is not installed")


@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize("name", list(NETWORKS))
def test_network_equals_pytorch(name: str, variant: str) -> None:
    keras.config.set_floatx("float64")
    keras.utils.set_random_seed(3)
    model = NETWORKS[name](12, 3)
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(5, 12, 12, 3)), "y_true": rng.integers(0, 10, 5)}
    expected, gradients = torch_graph.evaluate(trace(model, name, 12, 5), inputs)
    memory = Memory()
    executor = Executor(build_plan(trace(model, name, 12, 5), variant=variant), memory)
    found = executor.run(inputs)
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-9, atol=1e-11)
    assert memory.store is not None
    assert len(memory.store.variables) == len(gradients)
    for variable in memory.store.variables:
        gradient = memory.store.gradient_of(variable)
        np.testing.assert_allclose(gradient, gradients[variable.path], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_fusion_leaves_no_part_of_a_pattern(name: str) -> None:
    plan = build_plan(trace(NETWORKS[name](12, 3), name, 12, 2))
    kinds = [type(node.op).__name__ for node in plan.graph.nodes]
    assert "Bias" not in kinds
    for node in plan.graph.nodes:  # ReLU stays where it follows a pooling
        fuses = isinstance(node.op, ops.Activation) and node.op.kind in ops.FUSABLE
        assert not fuses or isinstance(node.inputs[0].node.op, ops.MaxPool)
    assert "Softmax" not in kinds
    assert not [step for step in plan.steps if isinstance(step, CopyStep)]


def test_relu_comes_after_the_pooling_with_the_same_gradient_where_it_cuts_off() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 6, 6, 3)) - 0.7  # many windows without a positive value
    found = []
    for wanted in (True, False):
        graph = Graph(training=True)
        with graph:
            image = graph.input("x", Spec(x.shape, "float64"))
            w = keras.Variable(np.eye(3), dtype="float64")
            y = ops.Activation("relu")(ops.matmul(image, w))
            outputs = {} if wanted else {"relu": y}
            graph.outputs = outputs
            graph.loss = graph.outputs["loss"] = ops.sum(ops.exp(ops.MaxPool((2, 2))(y)))
        memory = Memory()
        plan = build_plan(graph)
        assert plan.graph.nodes[0].op.activation == (None if wanted else "relu")
        loss = float(Executor(plan, memory).run({"x": x})["loss"])
        found.append((loss, memory.store.gradients.copy()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)
