"""Separable convolutions as one operator: the pattern, what looks like it, values, memory, predicted peaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, layers, ops
from pydtconv.graph import Executor, Graph, Memory, Plan, build_plan
from pydtconv.graph.passes import separable_convolutions
from pydtconv.ops.base import Spec
from pydtconv.ops.separable_convolution import SeparableConv
from tests.graph.tables import without

SIZE, CHANNELS = 12, 20
SHAPE = (2, SIZE, SIZE, CHANNELS)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are so small that making them again would cost more than what it saves; here memory is slow."""
    monkeypatch.setattr(separable_convolutions, "TIMES", 1 << 20)


def traced(make: Callable[[Any], Any], training: bool = True, shape: tuple[int, ...] = SHAPE) -> Graph:
    graph = Graph(training=training)
    with graph:
        x = graph.input("x", Spec(shape))
        y = make(x)
        graph.outputs = {"y": y}
        if training:
            graph.loss = ops.Mean()(ops.Multiply()(y, y))
    return graph


def kinds(make: Callable[[Any], Any], training: bool = False, shape: tuple[int, ...] = SHAPE) -> list[str]:
    found = [node.op.name for node in build_plan(traced(make, training, shape)).graph.nodes]
    return [kind for kind in found if "conv" in kind]


def separable(filters: int = CHANNELS, **options: Any) -> Any:
    return layers.SeparableConv2D(filters, 3, padding="same", **options)


def two(deep: dict[str, Any] | None = None, point: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    def make(x: Any) -> Any:
        x = layers.DepthwiseConv2D(3, **{"use_bias": False, **(deep or {})})(x)
        return layers.Conv2D(8, **{"kernel_size": 1, **(point or {})})(x)

    return make


def test_a_layer_is_one_operator_with_what_follows_it() -> None:
    def block(x: Any) -> Any:
        return layers.ReLU()(x + separable()(x))

    (node,) = build_plan(traced(block, training=False)).graph.nodes
    assert node.op.name == "separableconv+add"
    assert node.op.activation == "relu"
    assert len(node.inputs) == 5


@pytest.mark.parametrize(
    "make",
    [
        two(),
        two({"strides": 2, "depth_multiplier": 2}),
        two({"dilation_rate": 2}, {"activation": "relu"}),
    ],
    ids=["plain", "strides", "dilation"],
)
def test_layers_that_follow_each_other(make: Callable[[Any], Any]) -> None:
    assert kinds(make) == ["separableconv"]


def branches(x: Any) -> Any:
    t = layers.DepthwiseConv2D(3, use_bias=False)(x)
    return layers.concatenate([layers.Conv2D(4, 1)(t), layers.Conv2D(4, 1)(t)])


@pytest.mark.parametrize(
    "make",
    [
        two({"use_bias": True}),
        two({"activation": "relu"}),
        two(None, {"strides": 2}),
        two(None, {"kernel_size": 3}),
        two({"depth_multiplier": 1}, {"groups": 2}),
        branches,
        lambda x: layers.Conv2D(4, 1)(layers.BatchNormalization()(layers.DepthwiseConv2D(3)(x), training=True)),
    ],
    ids=["bias", "activation", "stride", "3x3", "groups", "two readers", "normalization"],
)
def test_what_looks_like_it_stays(make: Callable[[Any], Any]) -> None:
    assert not any(kind.startswith("separable") for kind in kinds(make))


def mobile(activation: Any = None, **between: Any) -> Callable[[Any], Any]:
    """A depthwise convolution, a normalization with its activation, and a pointwise one that is normalized, too."""

    def make(x: Any) -> Any:
        y = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(x)
        y = layers.BatchNormalization(**between)(y)
        y = y if activation is None else activation(y)
        y = layers.Conv2D(CHANNELS, 1, use_bias=False)(y)
        return layers.add([x, layers.BatchNormalization()(y)])

    return make


@pytest.mark.parametrize(
    ("activation", "kind"),
    [
        (None, None),
        (layers.ReLU(), "relu"),
        (layers.ReLU(6.0), "relu6"),
        (layers.Activation("silu"), "silu"),
        (layers.Activation("hard_silu"), "hard_silu"),
    ],
    ids=["none", "relu", "relu6", "silu", "hard_silu"],
)
def test_in_prediction_a_normalization_may_stand_between(activation: Any, kind: str | None) -> None:
    (node,) = build_plan(traced(mobile(activation), training=False)).graph.nodes
    assert node.op.name == "separableconv+norm+add"
    assert isinstance(node.op, SeparableConv)
    assert node.op.between is not None
    assert node.op.between.activation == kind
    assert len(node.inputs) == 3 + 4 + 4 + 1


@pytest.mark.parametrize(
    "make",
    [
        mobile(layers.Activation("tanh")),
        lambda x: mobile()(layers.DepthwiseConv2D(3, padding="same")(x)),
        lambda x: layers.Conv2D(4, 1)(layers.BatchNormalization()(layers.DepthwiseConv2D(3)(x))),
        lambda x: layers.Conv2D(4, 3)(layers.BatchNormalization()(layers.DepthwiseConv2D(3, use_bias=False)(x))),
    ],
    ids=["another activation", "what comes before", "bias", "3x3"],
)
def test_what_looks_like_a_normalization_between_stays(make: Callable[[Any], Any]) -> None:
    assert kinds(make).count("depthwiseconv") == 1


def test_in_training_the_normalization_is_an_operator() -> None:
    assert kinds(mobile(layers.ReLU(6.0)), training=True) == ["depthwiseconv", "conv"]


def test_predictions_through_a_normalization_are_those_of_all_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after training, which changes the statistics; the depthwise results are not in the plan's memory."""

    def network() -> keras.Model:
        keras.utils.set_random_seed(3)
        inputs = x = keras.Input((16, 16, 20))
        for activation in (layers.ReLU(6.0), layers.ReLU(), layers.Activation("hard_silu"), None):
            x = mobile(activation)(x)
        model = keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))
        model.compile(keras.optimizers.SGD(0.05), "mse")
        return model

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 16, 16, 20)).astype("float32"), rng.normal(size=(8, 3)).astype("float32")

    def found() -> tuple[list[np.ndarray], int, int]:
        model = network()
        values = [model.predict(x, verbose=0)]
        model.fit(x, y, batch_size=8, epochs=3, verbose=0)
        plan = build_plan(traced(model, training=False, shape=x.shape))
        return [*values, model.predict(x, verbose=0)], str(plan).count("separableconv+norm"), plan.arena_bytes

    joined, count, nbytes = found()
    assert count == 4
    monkeypatch.setattr(separable_convolutions, "_pays", lambda *_: False)
    apart, none, before = found()
    assert none == 0
    assert nbytes < before
    for a, b in zip(joined, apart, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_the_cost_model_keeps_them_apart_where_making_it_again_takes_long() -> None:
    """Few filters behind large windows."""

    def make(x: Any) -> Any:
        return layers.SeparableConv2D(2, 11, padding="same")(x)

    shape = (8, 28, 28, 256)
    assert kinds(make, training=True, shape=shape) == ["depthwiseconv", "conv"]
    assert kinds(make, shape=shape) == ["separableconv"]
    assert kinds(separable(256), training=True, shape=shape) == ["separableconv"]


def test_products_of_bfloat16_keep_their_own_algorithms() -> None:
    before = config.float32_matmul_precision()
    config.set_float32_matmul_precision("high")
    try:
        assert kinds(separable()) == ["depthwiseconv", "conv"]
    finally:
        config.set_float32_matmul_precision(before)


def test_a_limit_of_workspaces_keeps_the_gradient_out_of_them() -> None:
    before = config.conv_workspace_limit()
    config.set_conv_workspace_limit(1 << 20)
    try:
        assert kinds(separable()) == ["depthwiseconv", "conv"]
    finally:
        config.set_conv_workspace_limit(before)


def network() -> keras.Model:
    """A small Xception: normalizations between separable convolutions, residual connections, a stride."""
    keras.utils.set_random_seed(3)
    inputs = keras.Input((16, 16, 3))
    x = layers.Conv2D(24, 3, strides=2, padding="same", activation="relu")(inputs)
    for filters in (40, 40):
        shortcut = layers.Conv2D(filters, 1)(x)
        for _ in range(2):
            x = layers.BatchNormalization()(separable(filters, use_bias=False)(x))
            x = layers.ReLU()(x)
        x = layers.add([x, shortcut])
    x = layers.SeparableConv2D(33, 3, strides=2)(x)
    model = keras.Model(inputs, layers.Dense(5)(layers.GlobalAveragePooling2D()(x)))
    model.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@pytest.mark.usefixtures("always")
def test_losses_are_those_of_both_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 16, 16, 3)).astype("float32"), rng.integers(0, 5, 8)
    joined = network()
    found = [joined.train_on_batch(x, y) for _ in range(4)]
    predicted = joined.predict(x, verbose=0)
    assert str(joined.plan(8)).count("separableconv ") == 5
    monkeypatch.setattr(separable_convolutions, "_pays", lambda *_: False)
    apart = network()
    assert np.allclose(found, [apart.train_on_batch(x, y) for _ in range(4)], rtol=1e-4)
    assert np.allclose(predicted, apart.predict(x, verbose=0), rtol=1e-3, atol=1e-4)
    assert "separableconv" not in str(apart.plan(8))


def gradients(plan: Plan, dtype: str) -> dict[str, np.ndarray]:
    memory = Memory()
    x = np.random.default_rng(0).normal(size=(2, SIZE, SIZE, CHANNELS)).astype(dtype)
    Executor(plan, memory).run({"x": x})
    return {variable.path: memory.store.gradient_of(variable).copy() for variable in memory.store.variables}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_are_those_without_the_pass(dtype: str) -> None:
    def graph() -> Graph:
        keras.utils.set_random_seed(1)
        made = Graph(training=True)
        with made:
            x = made.input("x", Spec((2, SIZE, SIZE, CHANNELS), dtype))
            y = x
            for i in range(2):
                y = separable(dtype=dtype, name=f"separable{i}")(y)
                y = layers.BatchNormalization(dtype=dtype, name=f"normalization{i}")(y, training=True)
                y = layers.ReLU(dtype=dtype)(y)
            made.loss = ops.Mean()(ops.Multiply()(y, y))
        return made

    joined, apart = build_plan(graph()), build_plan(graph(), passes=without("separable-convolutions"))
    assert joined.arena_bytes < apart.arena_bytes
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    found_by, expected_by = gradients(joined, dtype), gradients(apart, dtype)
    assert len(found_by) == 10
    for path, found in found_by.items():
        expected = expected_by[path]
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max() + tolerance * 1e-2
