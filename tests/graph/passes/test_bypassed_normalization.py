"""Gradients of what is normalized that convolutions write."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.graph.schedule.steps import MeanTermsStep
from pydtconv.ops.base import Spec
from tests.graph.passes.test_normalized_prologue import bottlenecks, pointwise, traced
from tests.graph.tables import without

INPUTS = {"x": np.random.default_rng(1).normal(size=(3, 9, 8, 16))}


def normalized(x, training, relu=True):
    y = layers.BatchNormalization()(x, training=training)
    return layers.ReLU()(y) if relu else y


def before_an_addition(x, training):
    """As in ResNetV2 with bottlenecks: the gradient of x comes from an addition, then from a convolution."""
    for _ in range(2):
        new = pointwise(normalized(x, training), 8)
        new = layers.Conv2D(16, 3, padding="same")(layers.ReLU()(new))
        x = layers.Add()([x, new])
    return x


def twice(x, training):
    """Two normalizations of one image, and a third reader whose backward comes last."""
    first = layers.Activation("tanh")(x)
    return layers.Add()([first, pointwise(normalized(x, training), 16), pointwise(normalized(x, training, False), 16)])


def parts(x, training):
    """Normalizations of a concatenation, of its parts, and of some of them again."""
    a, b = layers.Conv2D(8, 3, padding="same")(x), layers.Conv2D(12, 3, padding="same")(x)
    ab = layers.Concatenate()([a, b])
    abc = layers.Concatenate()([ab, layers.Conv2D(4, 3, padding="same")(pointwise(normalized(ab, training), 8))])
    ends = [pointwise(normalized(each, training), 16) for each in (a, b, ab, abc)]
    return layers.Add()([*ends, layers.Conv2D(16, 3, padding="same")(normalized(a, training))])


def reshaped(x, training):
    """The gradient of a concatenation goes on as a view."""
    new = layers.Conv2D(8, 3, padding="same")(x)
    joined = layers.Concatenate()([layers.Reshape((9, 8, 16))(layers.Reshape((72, 16))(x)), new])
    return pointwise(normalized(joined, training), 16)


def added_up(x, training):
    """A concatenation whose parts have other gradients already, or later ones."""
    new = layers.Conv2D(16, 3, padding="same")(x)
    joined = layers.Concatenate()([x, new])
    total = layers.Add()([x, new])
    ends = [pointwise(normalized(each, training), 16) for each in (joined, total)]
    return layers.Add()([*ends, total])


def one_convolution(x, training):
    """What the convolution reads is the memory that it would add to: an addition passes its gradient to both."""
    for _ in range(2):
        x = layers.Add()([x, pointwise(normalized(x, training), 16)])
    return x


def normalized_again(x, training):
    """What is normalized is a normalized image, whose gradient a convolution completes and sums."""
    first = normalized(x, training)
    return layers.Add()([pointwise(first, 16), pointwise(normalized(first, training), 16)])


def normalized_and_pooled(x, training):
    """The same where global pooling completes and sums it."""
    first = normalized(x, training)
    mean = pointwise(layers.GlobalAveragePooling2D(keepdims=True)(first), 16)
    return layers.Add()([pointwise(normalized(first, training), 16), mean])


MAKES = (
    bottlenecks,
    before_an_addition,
    twice,
    parts,
    reshaped,
    added_up,
    one_convolution,
    normalized_again,
    normalized_and_pooled,
)


def results(graph: Graph, inputs, *left_out, **options):
    memory = Memory()
    executor = Executor(build_plan(graph, passes=without(*left_out), **options), memory)
    for _ in range(2):
        found = {name: value.copy() for name, value in executor.run(inputs).items()}
    return executor.plan, found, memory.store.gradients.copy()


def subtracted(plan) -> int:
    """Bytes of gradients that are completed by steps of their own."""
    return sum(step.dx.spec.nbytes for step in plan.steps if isinstance(step, MeanTermsStep))


@pytest.mark.parametrize(
    "left_out", [(), ("normalized-prologue",), ("shared-moments",), ("residual-addition",)], ids=str
)
@pytest.mark.parametrize("make", MAKES)
def test_gradients_are_the_same(make, left_out):
    keras.config.set_floatx("float64")
    plan, y, gradients = results(traced(make), INPUTS, *left_out)
    plain, want_y, want = results(traced(make), INPUTS, "bypassed-normalization", *left_out)
    assert plan.graph.bypassed
    assert subtracted(plan) > 0 == subtracted(plain)
    np.testing.assert_array_equal(y["y"], want_y["y"])
    np.testing.assert_allclose(gradients, want, rtol=1e-10, atol=1e-11 * np.abs(want).max())


@pytest.mark.parametrize("make", MAKES)
def test_gradients_are_those_of_finite_differences(make):
    keras.config.set_floatx("float64")
    graph = traced(make)
    memory = Memory()
    executor = Executor(build_plan(graph), memory)
    loss = lambda: float(np.mean(np.square(executor.run(INPUTS)["y"])))  # noqa: E731
    loss()
    store, rng = memory.store, np.random.default_rng(2)
    direction = rng.standard_normal(store.gradients.size)
    slope = store.gradients @ direction
    weights, step = store.parameters.copy(), 1e-7
    ends = []
    for sign in (1, -1):
        store.parameters[...] = weights + sign * step * direction
        ends.append(loss())
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-5)


def test_each_channel_of_a_dense_block_is_completed_once():
    """Three layers normalize 16, 24 and 32 channels; 40 in all are completed, by parts when they are read."""
    plan = results(traced(bottlenecks), INPUTS)[0]
    assert len(plan.graph.bypassed) == 3
    pixels = 3 * 9 * 8 * 4
    assert subtracted(plan) == (16 + 8 + 8) * pixels
    plain = results(traced(bottlenecks), INPUTS, "bypassed-normalization")[0]
    assert plan.arena_bytes <= plain.arena_bytes


@pytest.mark.parametrize("synchronized", [False, True])
def test_terms_of_other_means_are_not_added(synchronized):
    """Of normalizations over all processes' samples and over this one's: their means differ."""

    def two(x, training):
        first = layers.BatchNormalization()(x, training=training)
        second = layers.BatchNormalization(synchronized=synchronized)(x, training=training)
        return layers.Add()([pointwise(first, 16), pointwise(second, 16)])

    plan = build_plan(traced(two))
    assert len(plan.graph.bypassed) == 2
    assert sum(isinstance(step, MeanTermsStep) for step in plan.steps) == 1 + synchronized


def test_the_gradient_of_what_is_normalized_can_be_a_result():
    keras.config.set_floatx("float64")

    def with_gradient(*left_out):
        keras.utils.set_random_seed(3)
        graph = Graph(training=True)
        with graph:
            x = graph.input("x", Spec((3, 9, 8, 16), "float64"))
            inner = layers.Conv2D(16, 3, padding="same")(x)
            y = twice(inner, True)
            graph.outputs = {"y": y}
            graph.loss = ops.Mean()(ops.Multiply()(y, y))
            graph.gradients = {"d inner": inner}
        memory = Memory()
        executor = Executor(build_plan(graph, passes=without(*left_out)), memory)
        return executor.plan, {name: value.copy() for name, value in executor.run(INPUTS).items()}

    (plan, found), (_, want) = with_gradient(), with_gradient("bypassed-normalization")
    assert plan.graph.bypassed
    np.testing.assert_allclose(found["d inner"], want["d inner"], rtol=1e-10, atol=1e-14)


def test_within_a_memory_limit():
    keras.config.set_floatx("float64")

    def deep(x, training):
        return bottlenecks(bottlenecks(x, training), training)

    plan, _, free = results(traced(deep), INPUTS)
    assert len(plan.graph.bypassed) == 6
    limited, _, found = results(traced(deep), INPUTS, memory_limit=int(plan.arena_bytes * 0.95))
    assert limited.arena_bytes < plan.arena_bytes
    assert len(limited.graph.bypassed) == 6
    np.testing.assert_allclose(found, free, rtol=1e-10, atol=1e-11 * np.abs(free).max())


def test_not_where_nothing_is_shared_or_the_image_has_other_readers():
    def alone(x, training):
        return pointwise(normalized(layers.Conv2D(16, 3, padding="same")(x), training), 16)

    def read_elsewhere(x, training):
        y = normalized(x, training)
        return layers.Add()([x, pointwise(y, 16), layers.Activation("tanh")(y)])

    def by_winograd(x, training):
        return layers.Add()([x, layers.Conv2D(16, 3, padding="same")(normalized(x, training))])

    for make in (alone, read_elsewhere):
        assert not build_plan(traced(make)).graph.bypassed, make.__name__
    graph = traced(by_winograd, (3, 32, 32, 16))
    plan = build_plan(graph)
    by = {names["backward_data"] for names in plan.graph.algorithms.values()}
    assert ("direct" in by) == bool(plan.graph.bypassed)
