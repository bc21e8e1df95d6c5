"""Normalized images that never lie in memory."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.conv import timings
from pydtconv.dtypes import real
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.graph.schedule.steps import BackwardStep, ForwardStep, PassStep, RecomputeStep
from pydtconv.ops.base import Spec
from tests.graph.tables import without


def pointwise(x, filters, strides=1):
    kernel = np.random.default_rng(filters).normal(size=(1, 1, x.shape[-1], filters)) / 8
    return ops.Conv(strides, algorithm="direct")(x, Variable(kernel, name=f"kernel_{x.shape[-1]}", dtype=real(x.dtype)))


def bottlenecks(x, training):
    """As in a dense block: batch normalization, ReLU, 1x1, the same with 3x3, concatenation."""
    for relu in (True, True, False):
        new = layers.BatchNormalization(scale=relu)(x, training=training)
        new = pointwise(layers.ReLU()(new) if relu else new, 24)
        new = layers.ReLU()(layers.BatchNormalization(center=relu)(new, training=training))
        new = layers.Conv2D(8, 3, padding="same")(new)
        x = layers.Concatenate()([x, new])
    return x


def traced(make=bottlenecks, shape=(3, 9, 8, 16)) -> Graph:
    keras.utils.set_random_seed(3)
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec(shape, keras.config.floatx()))
        y = make(layers.Conv2D(16, 3, padding="same")(x), True)
        graph.outputs = {"y": y}
        graph.loss = ops.Mean()(ops.Multiply()(y, y))
    return graph


def run(graph: Graph, elided: bool):
    memory = Memory()
    executor = Executor(build_plan(graph, passes=without(*(() if elided else ("normalized-prologue",)))), memory)
    x = np.random.default_rng(1).normal(size=graph.inputs["x"].shape)
    for _ in range(2):
        y = executor.run({"x": x})["y"].copy()
    state = [t.variable.value.copy() for t in graph.parameters if not t.variable.trainable]
    return executor.plan, y, memory.store.gradients.copy(), state


def with_prologue(plan):
    return [step for step in plan.steps if isinstance(step, PassStep) and step.prologue is not None]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_those_of_images_in_memory(dtype):
    keras.config.set_floatx(dtype)
    plan, *found = run(traced(), True)
    plain, *want = run(traced(), False)
    names = [
        each for each in plan.graph.algorithms.values() if each["forward"] == each["backward_weights"] == "winograd"
    ]
    elided = 3 + sum(
        node.inputs[0] in plan.graph.elided for node in plan.graph.algorithms if node.inputs[1].shape[0] == 3
    )
    assert 3 <= elided <= 3 + len(names)  # those of 3x3 where AUTO takes what can
    assert [type(step) for step in with_prologue(plan)] == [ForwardStep] * elided + [BackwardStep] * elided
    assert not with_prologue(plain)
    normalizations = [step for step in plan.steps if type(step.node.op).__name__ == "BatchNorm"]
    assert len([step for step in normalizations if isinstance(step, ForwardStep) and step.y == (None,)]) == elided
    rtol = 2e-4 if dtype == "float32" else 1e-11
    for a, b in zip([*found[:2], *found[2]], [*want[:2], *want[2]], strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


def squeezed(x, training):
    """Squeeze-and-excitation of a normalized image, whose mean is all else that is read of it."""
    for activation in ("silu", "relu"):
        x = pointwise(layers.Activation(activation)(layers.BatchNormalization()(x, training=training)), 40)
        x = layers.Activation(activation)(layers.BatchNormalization()(x, training=training))
        factors = layers.GlobalAveragePooling2D(keepdims=True)(x)
        factors = layers.Conv2D(40, 1, activation="sigmoid")(layers.Conv2D(4, 1, activation="silu")(factors))
        x = pointwise(layers.Multiply()([x, factors]), 16)
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_squeeze_and_excitation_reads_through_a_normalization(dtype):
    keras.config.set_floatx(dtype)
    plan, *found = run(traced(squeezed, (6, 9, 8, 16)), True)
    _, *want = run(traced(squeezed, (6, 9, 8, 16)), False)
    through = [(type(step).__name__, step.node.op.name) for step in with_prologue(plan)]
    for name in ("globalaveragepool", "multiply"):
        assert through.count(("ForwardStep", name)) == 2
    assert through.count(("RecomputeStep", "multiply")) == through.count(("BackwardStep", "multiply")) == 2
    again = [step.node.op.name for step in plan.steps if isinstance(step, RecomputeStep)]
    assert "batchnorm" not in again
    rtol = {"float32": 1e-4, "float64": 1e-11}[dtype]
    for a, b in zip([*found[:2], *found[2]], [*want[:2], *want[2]], strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


def activated(x, training):
    """All activations, read by pointwise, depthwise and 3x3 convolutions."""
    for activation in ("relu", "relu6", "silu", "hard_silu", "linear"):
        for layer in (layers.Conv2D(16, 1), layers.DepthwiseConv2D(3, padding="same"), layers.Conv2D(16, 3)):
            x = layers.Activation(activation)(layers.BatchNormalization()(x, training=training))
            x = layer(layers.ZeroPadding2D(1)(x) if layer.name.startswith("conv2d") else x)
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64", "mixed_bfloat16"])
@pytest.mark.parametrize("make", [bottlenecks, squeezed, activated])
def test_predictions_follow_what_is_normalized_with(make, dtype):
    """Frozen, too, images that are normalized stay out of memory; statistics may change between two runs."""
    keras.config.set_dtype_policy(dtype)
    graphs, found, images = [], [], np.random.default_rng(1).normal(size=(3, 9, 8, 16))
    for passes in (without("normalized-results"), without("normalized-results", "normalized-prologue")):
        keras.utils.set_random_seed(3)
        graph = Graph()
        with graph:
            x = graph.input("x", Spec((3, 9, 8, 16), keras.config.floatx()))
            graph.outputs = {"y": ops.Cast(keras.config.floatx())(make(layers.Conv2D(16, 3, padding="same")(x), False))}
        graphs.append((graph, Executor(build_plan(graph, passes=passes), Memory())))
    for _ in range(2):
        for graph, _ in graphs:
            generator = np.random.default_rng(len(found))
            for tensor in graph.parameters:
                if len(tensor.shape) == 1:
                    tensor.variable.assign(generator.uniform(0.5, 1.5, tensor.shape))
        found.append([executor.run({"x": images})["y"].copy() for _, executor in graphs])
    assert len(with_prologue(graphs[0][1].plan)) >= 3
    assert not with_prologue(graphs[1][1].plan)
    rtol = {"float32": 1e-4, "float64": 1e-11, "mixed_bfloat16": 0.05}[dtype]
    for ours, plain in found:
        np.testing.assert_allclose(ours, plain, rtol=rtol, atol=rtol * np.abs(plain).max())
    assert np.abs(found[0][0] - found[1][0]).max() > 0.1 * np.abs(found[0][0]).max()


def test_what_is_multiplied_otherwise_stays_in_memory():
    def by_pixel(x, training):
        y = layers.BatchNormalization()(x, training=training)
        return layers.Multiply()([y, layers.Conv2D(1, 1)(layers.GlobalAveragePooling2D(keepdims=True)(y))])

    def second(x, training):
        y = layers.BatchNormalization()(x, training=training)
        return layers.Multiply()([layers.GlobalAveragePooling2D(keepdims=True)(y), y])

    for make in (by_pixel, second):
        assert not with_prologue(build_plan(traced(make))), make.__name__


def test_memory_is_saved():
    """One large normalized image after the other is not in memory while its convolution runs."""
    shape = (16, 32, 32, 16)
    elided = run(traced(shape=shape), True)[0]
    plain = run(traced(shape=shape), False)[0]
    live = [plan.live_bytes()[: plan.backward_start] for plan in (elided, plain)]
    assert all(a <= b for a, b in zip(*live, strict=True))
    assert sum(live[0]) < sum(live[1])


def test_stay_in_memory_where_somebody_else_reads_them():
    def shared(x, training):
        y = layers.ReLU()(layers.BatchNormalization()(x, training=training))
        return layers.Add()([pointwise(y, 16), y])

    def strided(x, training):
        return pointwise(layers.BatchNormalization()(x, training=training), 16, 2)

    def other_activation(x, training):
        return pointwise(layers.Activation("tanh")(layers.BatchNormalization()(x, training=training)), 16)

    def frozen(x, training):
        return pointwise(layers.BatchNormalization(trainable=False)(x, training=training), 16)

    for make in (shared, strided, other_activation, frozen):
        assert not with_prologue(build_plan(traced(make))), make.__name__


def test_the_image_itself_is_not_overwritten_before_its_last_reader():
    """Somebody works in place on what is read instead of the normalized image."""

    def tail(x, training):
        y = pointwise(layers.BatchNormalization()(x, training=training), 16)
        return layers.Add()([y, layers.Activation("tanh")(x)])

    found, want = (run(traced(tail), elided) for elided in (True, False))
    np.testing.assert_allclose(found[1], want[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[2], want[2], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("seconds", "taken"), [(1.02, True), (1.05, False)])
@pytest.mark.parametrize("training", [True, False])
def test_what_normalizes_and_is_hardly_slower_is_taken(monkeypatch, training, seconds, taken):
    """As measured: 1x1 convolutions of many channels may be faster by another algorithm, which reads what is stored."""

    def measured(p, direction, device="cpu"):
        found = {"forward": {"convgemm": 1.0, "direct": seconds}, "backward_weights": {"direct": 1.0}}
        return found.get(direction, {}) if p.is_pointwise else {}

    monkeypatch.setattr(timings, "measured", measured)
    graph = Graph(training=training)
    with graph:
        x = graph.input("x", Spec((3, 9, 8, 16), "float32"))
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3)(x), training=training))
        y = layers.Conv2D(24, 1)(y)
        graph.outputs = {"y": y}
        graph.loss = ops.Mean()(ops.Multiply()(y, y)) if training else None
    plan = build_plan(graph, passes=without("normalized-results"))
    (pointwise_names,) = (each for node, each in plan.algorithms.items() if node.inputs[1].shape[:2] == (1, 1))
    assert pointwise_names["forward"] == ("direct" if taken else "convgemm")
    assert len(plan.graph.elided) == taken
