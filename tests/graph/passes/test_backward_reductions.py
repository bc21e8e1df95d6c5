"""Sums of batch normalization's backward that convolutions compute."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.conv import ConvProblem, timings
from pydtconv.conv.selection import seconds_to_read
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.graph.schedule.steps import BackwardStep
from pydtconv.ops.base import Spec
from pydtconv.ops.normalization import BatchNorm
from tests.graph.networks import NETWORKS, trace
from tests.graph.passes.test_normalized_prologue import bottlenecks, pointwise, traced
from tests.graph.tables import without


def results(graph: Graph, inputs, fused: bool, elided: bool = True):
    left_out = [*(() if fused else ("backward-reductions",)), *(() if elided else ("normalized-prologue",))]
    memory = Memory()
    executor = Executor(build_plan(graph, passes=without(*left_out)), memory)
    for _ in range(2):
        found = {name: value.copy() for name, value in executor.run(inputs).items()}
    return executor.plan, found, memory.store.gradients.copy()


def given(plan) -> int:
    return sum(isinstance(step, BackwardStep) and step.sums is not None for step in plan.steps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("elided", [True, False])
def test_gradients_are_the_same(dtype, elided):
    keras.config.set_floatx(dtype)
    inputs = {"x": np.random.default_rng(1).normal(size=(3, 9, 8, 16))}
    plan, y, gradients = results(traced(bottlenecks), inputs, True, elided)
    plain, want_y, want = results(traced(bottlenecks), inputs, False, elided)
    assert given(plan) == 6
    assert given(plain) == 0
    np.testing.assert_array_equal(y["y"], want_y["y"])
    rtol = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(gradients, want, rtol=rtol, atol=rtol * np.abs(want).max())


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "plain"])
def test_networks_compute_the_same_without(name):
    keras.config.set_floatx("float64")
    rng = np.random.default_rng(1)
    inputs = {"x": rng.normal(size=(5, 12, 12, 3)), "y_true": rng.integers(0, 10, 5)}
    both = []
    for fused in (True, False):
        keras.utils.set_random_seed(3)
        both.append(results(trace(NETWORKS[name](12, 3), name, 12, 5), inputs, fused))
    assert given(both[0][0]) > 0
    np.testing.assert_allclose(both[0][2], both[1][2], rtol=1e-8, atol=1e-11)


def test_only_where_the_convolution_completes_the_gradient():
    """Two readers: the one whose backward runs last gathers, after it has added its part."""

    def two(x, training):
        y = layers.ReLU()(layers.BatchNormalization()(x, training=training))
        return layers.Add()([layers.Conv2D(8, 3, padding="same")(y), layers.Conv2D(8, 1)(y)])

    def sum_last(x, training):
        y = layers.ReLU()(layers.BatchNormalization()(x, training=training))
        z = layers.Activation("tanh")(y)  # its backward comes last
        return layers.Add()([layers.Conv2D(16, 3, padding="same")(y), z])

    inputs = {"x": np.random.default_rng(1).normal(size=(3, 9, 8, 16))}
    for make, expected in ((two, 1), (sum_last, 0)):
        plan, _, gradients = results(traced(make), inputs, True)
        _, _, want = results(traced(make), inputs, False)
        assert given(plan) == expected
        np.testing.assert_allclose(gradients, want, rtol=1e-3, atol=1e-5 * np.abs(want).max())


def test_not_for_frozen_ones_or_other_activations():
    def tanh(x, training):
        return pointwise(layers.Activation("tanh")(layers.BatchNormalization()(x, training=training)), 16)

    def frozen(x, training):
        return pointwise(layers.BatchNormalization(trainable=False)(x, training=training), 16)

    for make in (tanh, frozen):
        plan = build_plan(traced(make))
        assert any(isinstance(step.node.op, BatchNorm) for step in plan.steps)
        assert given(plan) == 0, make.__name__


def test_none_with_algorithms_that_cannot_gather():
    def plain(x, training):
        y = layers.BatchNormalization()(x, training=training)
        return layers.Conv2D(8, 3, padding="same")(y)

    assert given(build_plan(traced(plain))) == 1
    assert given(build_plan(traced(plain), variant="BASE")) == 0


@pytest.mark.parametrize(("share", "taken"), [(0.9, "direct"), (1.5, "deconvgemm")])
def test_one_that_gathers_is_taken_where_it_takes_less_than_reading_the_image_twice(monkeypatch, share, taken):
    """As measured alone, where nothing is gathered."""
    images = seconds_to_read(ConvProblem(3, 40, 40, 16, 24, 1), 2)

    def measured(p, direction, device="cpu"):
        found = {"deconvgemm": 1.0, "direct": 1.03 + share * images} if direction == "backward_data" else {}
        return found if p.is_pointwise else {}

    monkeypatch.setattr(timings, "measured", measured)
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((3, 40, 40, 16), "float32"))
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same")(x), training=True))
        y = layers.Conv2D(24, 1)(y)
        graph.outputs = {"y": y}
        graph.loss = ops.Mean()(ops.Multiply()(y, y))
    plan = build_plan(graph)
    (names,) = (each for node, each in plan.algorithms.items() if node.inputs[1].shape[:2] == (1, 1))
    assert names["backward_data"] == taken
    assert given(plan) == (taken == "direct")
