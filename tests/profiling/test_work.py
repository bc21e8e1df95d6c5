"""Bytes and arithmetic of steps, against counts by hand."""

import numpy as np

import pydtconv as keras
from pydtconv import layers
from pydtconv.graph import build_plan
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.graph.schedule.steps import BackwardStep, ForwardStep, RecomputeStep, Updates, UpdateStep
from pydtconv.profiling import Profiler
from pydtconv.profiling.work import bytes_of, cost_of
from tests.graph.networks import NETWORKS, trace
from tests.graph.tables import rewrite

N, H, CI, CO = 4, 8, 3, 16
X, Y = 4 * N * H * H * CI, 4 * N * H * H * CO  # bytes of the images, of what a layer computes
W1, W2, B = 4 * 9 * CI * CO, 4 * 9 * CO * CO, 4 * CO


def steps_of(model):
    model.compile("sgd", "mse")
    found = {}
    for step in model.plan(N).steps:
        found.setdefault((step.node.op.name, step.kind), []).append(step)
    return found


def test_convolutions_by_part():
    inputs = keras.Input((H, H, CI))
    x = layers.Conv2D(CO, 3, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(CO, 3, padding="same", use_bias=False)(x)
    steps = steps_of(keras.Model(inputs, x))
    first, second = steps["conv", "forward"]
    assert bytes_of(first, "forward") == X + W1 + B + Y
    assert bytes_of(second, "forward") == Y + W2 + Y
    assert cost_of(second, "forward").flops == 2 * N * H * H * 9 * CO * CO
    second, first = steps["conv", "backward"]
    assert bytes_of(second, "backward_data") == Y + W2 + Y
    assert bytes_of(second, "backward_weights") == Y + Y + W2
    assert bytes_of(first, "backward_bias") == Y + 2 * Y + B  # y, dy read and written, db
    assert bytes_of(first, "backward_weights") == X + Y + W1
    assert cost_of(first, "backward_bias").flops == 0


def test_convolutions_that_add_read_an_image_more():
    inputs = keras.Input((H, H, CI))
    x = layers.Conv2D(CO, 3, padding="same")(inputs)
    steps = steps_of(keras.Model(inputs, layers.Add()([x, layers.Conv2D(CO, 3, padding="same")(x)])))
    (forward,), (backward,) = steps["conv+add", "forward"], steps["conv+add", "backward"]
    assert bytes_of(forward, "forward") == Y + W2 + B + Y + Y
    assert bytes_of(backward, "backward_bias") == Y + B
    assert bytes_of(backward, "backward_weights") == Y + Y + W2


def test_what_only_moves_bytes():
    inputs = keras.Input((H, H, CI))
    x = layers.Conv2D(CO, 3, padding="same", use_bias=False)(inputs)
    shortcut = layers.BatchNormalization()(x)
    other = layers.Conv2D(CO, 3, padding="same", use_bias=False, activation="relu")(shortcut)
    x = layers.Add()([shortcut, other])
    steps = steps_of(keras.Model(inputs, x))
    (add,) = steps["add", "forward"]
    assert bytes_of(add, "forward") == 3 * Y
    assert cost_of(add, "forward").flops == 0
    (normalization,) = steps["batchnorm", "forward"]
    statistics = sum(view.spec.nbytes for view in normalization.saved.values())
    # gamma, beta, the moving averages, the moments that the convolution gathered
    assert bytes_of(normalization, "forward") == 2 * Y + 6 * B + statistics
    (normalization,) = steps["batchnorm", "backward"]
    images = [view for view in (*normalization.x, *normalization.y) if view is not None and len(view.spec.shape) == 4]
    small = bytes_of(normalization, "backward") - (2 + len(images)) * Y
    assert 0 < small < Y / 4


def test_accumulated_gradients_are_read_too():
    inputs = keras.Input((H, H, CO))
    x = layers.Conv2D(CO, 3, padding="same", use_bias=False)(inputs)
    a, b = (layers.Conv2D(CO, 3, padding="same", use_bias=False)(x) for _ in range(2))
    steps = steps_of(keras.Model(inputs, layers.Multiply()([a, b])))
    later, first, _ = steps["conv", "backward"]
    assert [later.accumulate[0], first.accumulate[0]] == [False, True]
    assert bytes_of(first, "backward_data") == bytes_of(later, "backward_data") + Y


def test_costs_of_all_parts_of_a_step_are_found():
    """The parts under which passes announce themselves are those for which costs are told."""
    inputs = keras.Input((H, H, CI))
    x = layers.Conv2DTranspose(CO, 3, padding="same", activation="relu")(inputs)
    x = layers.DepthwiseConv2D(3, padding="same")(layers.Conv2D(CO, 3)(x))
    model = keras.Model(inputs, layers.Dense(3, activation="tanh")(layers.Flatten()(x)))
    model.compile("sgd", "mse")
    with Profiler(model, steps=1, skip=0) as profiler:
        model.train_on_batch(np.ones((N, H, H, CI)), np.ones((N, 3)))
    expected = {
        "convtranspose": {"forward", "backward_data", "backward_weights"},
        "conv": {"forward", "backward_data", "backward_weights"},
        "depthwiseconv": {"forward", "backward_data", "backward_weights"},
        "dense": {"forward", "backward_data", "backward_weights"},
    }
    expected["convtranspose"].discard("backward_data")  # the images get no gradient
    found = {}
    for timing in profiler.profile.timings:
        if timing.flops:
            found.setdefault(timing.kind, set()).add(timing.direction)
            assert timing.bytes > 0
    assert found == expected


def test_what_backward_computes_again_is_told_apart():
    graph = trace(NETWORKS["plain"](16, 4), "plain", 16, N)
    rewrite(graph)
    chosen = [tensor for node in graph.nodes if node.op.name == "conv" for tensor in node.outputs]
    plan = build_plan(graph, recompute=chosen)
    again = [step for step in plan.steps if isinstance(step, RecomputeStep) and step.node.op.name == "conv"]
    assert again
    for step in again:
        forward = next(other for other in plan.steps if other.node is step.node and isinstance(other, ForwardStep))
        assert bytes_of(step, "recompute") == bytes_of(forward, "forward")
        assert cost_of(step, "recompute") == cost_of(forward, "forward")
        assert cost_of(step, "recompute").flops > 0


def test_gradients_that_are_computed_and_applied_by_rows_are_counted_once(monkeypatch):
    monkeypatch.setattr(Graph, "thresholds", Thresholds(applied_gradients=0, gradient_rows=4 << 10))
    graph = trace(NETWORKS["plain"](16, 4), "plain", 16, N)
    steps = build_plan(graph, updates=Updates()).steps
    node = next(step.node for step in steps if isinstance(step, BackwardStep) and step.rows is not None)
    x, w = (tensor.spec for tensor in node.inputs[:2])
    passes = [step for step in steps if isinstance(step, BackwardStep)]
    parts = [step for step in passes if step.node is node and step.rows is not None]
    assert len(parts) > 2
    whole = node.op.cost("backward", x, w)["backward_weights"]
    assert sum(cost_of(step, "backward_weights").flops for step in parts) == whole.flops
    moved = sum(bytes_of(step, "backward_weights") for step in parts)
    assert moved == x.nbytes + w.nbytes + len(parts) * node.outputs[0].spec.nbytes
    updates = [step for step in steps if isinstance(step, UpdateStep) and step.rows is not None]
    assert sum(bytes_of(step, "update", slots=1) for step in updates) == 5 * w.nbytes
    assert cost_of(updates[0], "update").flops == 0
