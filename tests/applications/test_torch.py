"""The four networks of the papers at 32x32 against PyTorch: equal weights, batches and SGD steps.

PyTorch evaluates the graph as it was traced, operator by operator, with gradients by autograd.  In float64: in float32
a ReLU whose input rounds to the other side of zero moves gradients by a percent, whoever has computed them,
and ten steps of a network with normalization over four images make that a percent of the loss.
"""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications, ops
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.ops.base import Spec

torch_graph = pytest.importorskip("tests.torch_graph", reason="PyTorch is not installed")

STEPS, BATCH, RATE = 10, 4, 0.01
NETWORKS = {"vgg16": {"dropout": 0}, "resnet34": {}, "densenet121": {}, "googlenet": {}}


def build(name: str) -> keras.Model:
    keras.utils.set_random_seed(5)
    return applications.build(name, input_shape=(32, 32, 3), classes=10, **NETWORKS[name])


def trace(model: keras.Model) -> Graph:
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((BATCH, 32, 32, 3), keras.config.floatx()))
        y_true = graph.input("y", Spec((BATCH,), "int32"))
        loss = ops.CrossEntropy("sparse", from_logits=False)(model(x, training=True), y_true)
        graph.loss = graph.outputs["loss"] = ops.WeightedMean()(loss)
    return graph


def batch_of(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal((BATCH, 32, 32, 3), np.float32), "y": rng.integers(0, 10, BATCH)}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(NETWORKS))
def test_losses_of_ten_steps_equal_pytorch(name: str) -> None:
    keras.config.set_floatx("float64")
    rng = np.random.default_rng(7)
    model, twin = build(name), build(name)
    graph = trace(twin)
    model.compile(keras.optimizers.SGD(RATE), "sparse_categorical_crossentropy")
    for step in range(STEPS):
        batch = batch_of(rng)
        expected, gradients = torch_graph.evaluate(graph, batch)
        for variable in twin.trainable_variables:
            variable.value -= RATE * gradients[variable.path]
        model.reset_metrics()
        loss = float(model.train_on_batch(batch["x"], batch["y"]))
        assert loss == pytest.approx(float(expected["loss"]), rel=1e-3), f"step {step}"


def gradient_errors(name: str) -> dict[str, float]:
    """By variable: the distance of the first gradient from PyTorch's, relative to its length.

    Where a gradient is nearly zero, as of a convolution before a normalization, it is relative to a thousandth of the
    mean length.
    """
    model, twin = build(name), build(name)
    batch = batch_of(np.random.default_rng(7))
    _, expected = torch_graph.evaluate(trace(twin), batch)
    memory = Memory()
    Executor(build_plan(trace(model)), memory).run(batch)
    assert memory.store is not None
    assert len(memory.store.variables) == len(expected) == len(model.trainable_variables)
    floor = 1e-3 * np.mean([np.linalg.norm(gradient) for gradient in expected.values()])
    errors = {}
    for ours, theirs in zip(model.trainable_variables, twin.trainable_variables, strict=True):
        difference = memory.store.gradient_of(ours) - expected[theirs.path]
        errors[ours.path] = float(np.linalg.norm(difference) / max(np.linalg.norm(expected[theirs.path]), floor))
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("name", list(NETWORKS))
def test_first_gradients_equal_pytorch(name: str) -> None:
    keras.config.set_floatx("float64")
    errors = gradient_errors(name)
    worst = max(errors, key=errors.__getitem__)
    assert errors[worst] < 1e-9, f"{worst}: {errors[worst]:.2e}"


@pytest.mark.slow
def test_first_gradients_equal_pytorch_in_float32() -> None:
    errors = gradient_errors("vgg16")
    worst = max(errors, key=errors.__getitem__)
    assert errors[worst] < 1e-4, f"{worst}: {errors[worst]:.2e}"
