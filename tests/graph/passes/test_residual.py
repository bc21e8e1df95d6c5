"""Additions that convolutions do on the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Executor, Graph, Memory, Plan, build_plan
from pydtconv.graph.schedule.steps import BackwardStep, ForwardStep
from pydtconv.ops.base import Spec
from tests.graph.networks import NETWORKS, trace
from tests.graph.tables import without

SIZE = 6


def traced(make: Callable[[Any], Any], training: bool = False, channels: int = 4) -> Graph:
    graph = Graph(training=training)
    with graph:
        x = graph.input("x", Spec((2, SIZE, SIZE, channels)))
        y = make(x)
        graph.outputs = {"y": y}
        if training:
            graph.loss = ops.Mean()(ops.Multiply()(y, y))
    return graph


def kinds(make: Callable[[Any], Any], **options: Any) -> list[str]:
    return [node.op.name for node in build_plan(traced(make, **options)).graph.nodes]


def conv(filters: int = 4, kernel_size: int = 3, **options: Any) -> Any:
    return layers.Conv2D(filters, kernel_size, padding="same", **options)


def test_of_a_block_with_an_activation_after_it() -> None:
    (first, second) = build_plan(traced(lambda x: layers.ReLU()(x + conv()(conv(activation="relu")(x))))).graph.nodes
    assert first.op.name == "conv"
    assert second.op.name == "conv+add"
    assert second.op.activation == "relu"
    assert len(second.inputs) == 4


def test_the_later_of_two_convolutions_adds() -> None:
    def block(x: Any) -> Any:
        return conv(name="a")(x) + conv(name="b")(x)

    nodes = build_plan(traced(block)).graph.nodes
    assert [(node.scope, node.op.name) for node in nodes] == [("a", "conv"), ("b", "conv+add")]


def test_moments_of_the_sum_are_gathered() -> None:
    def block(x: Any) -> Any:
        return layers.BatchNormalization()(x + conv()(x), training=True)

    found = kinds(block, training=True)
    assert found[:2] == ["conv+add", "batchnorm"]
    assert build_plan(traced(block, training=True)).graph.nodes[0].op.moments


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x + conv(activation="tanh")(x),
        lambda x: x[..., :1] + conv()(x),
        lambda x: x + conv(1)(x),
        lambda x: (lambda y: y + ops.multiply(y, y))(conv()(x)),
        lambda x: (lambda y: y + y)(conv()(x)),
        lambda x: (lambda y: ops.tanh(x) + y)(conv()(x)),
        lambda x: ops.mean_of([x, conv()(x)]),
    ],
    ids=["activation", "broadcast", "broadcast y", "two readers", "twice", "later", "average"],
)
def test_is_left_alone(make: Callable[[Any], Any]) -> None:
    """What is added comes later, is broadcast or activated first, or the convolution has other readers."""
    found = kinds(make)
    assert "conv" in found
    assert "conv+add" not in found


def places(plan: Plan) -> list[bool]:
    """For each step that adds, whether y takes the place of the residual."""
    steps = [step for step in plan.steps if step.node.op.name == "conv+add" and isinstance(step, ForwardStep)]
    return [step.y[0].same_place(step.x[-1]) for step in steps]


def test_sums_take_the_place_of_what_nobody_reads_afterwards() -> None:
    def blocks(x: Any) -> Any:
        x = conv()(x)
        for _ in range(3):
            x = x + conv()(layers.ReLU()(conv()(x)))
        return x

    plan = build_plan(traced(blocks))
    assert places(plan) == [True, True, True]
    assert not any(places(build_plan(traced(lambda x: x + conv()(conv()(x))))))  # an input stays


def test_sums_do_not_take_the_place_of_what_the_convolution_reads() -> None:
    def slices(x: Any) -> Any:
        """a is a slice of what the convolution reads."""
        a, b = conv()(x), conv()(x)
        return layers.ReLU()(conv()(layers.Concatenate()([a, b]))) + conv()(layers.Concatenate()([a, b]))

    assert places(build_plan(traced(lambda x: (lambda y: y + conv()(y))(conv()(x))))) == [False]

    def part(x: Any) -> Any:
        a = conv()(x)
        return conv()(layers.Concatenate()([a, conv()(x)])) + a

    assert places(build_plan(traced(part))) == [False]
    assert places(build_plan(traced(slices))) == [True]


def preactivation(*left_out: str) -> Plan:
    graph = trace(NETWORKS["preactivation"](32, 16), "preactivation", 32, 16)
    return build_plan(graph, passes=without(*left_out))


def test_costs_no_memory() -> None:
    fused, plain = preactivation(), preactivation("residual-addition")
    names = [[node.op.name for node in plan.graph.nodes] for plan in (fused, plain)]
    assert names[0].count("conv+add") == names[1].count("add") == 4
    assert "add" not in names[0]
    assert "moments" not in names[0]
    assert fused.arena_bytes <= plain.arena_bytes
    assert "conv+add" in str(fused)


def unnormalized() -> keras.Model:
    """Blocks whose sums have an activation, which backward reads."""
    inputs = keras.Input((32, 32, 3))
    x = conv(16, activation="relu")(inputs)
    for _ in range(3):
        x = layers.ReLU()(x + conv(16)(conv(16, activation="relu")(x)))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def test_costs_no_memory_with_an_activation_after_it() -> None:
    """The gradient of what the convolution reads goes over the sum, which nobody reads once its slope is known."""
    fused = build_plan(trace(unnormalized(), "unnormalized", 32, 16))
    plain = build_plan(trace(unnormalized(), "unnormalized", 32, 16), passes=without("residual-addition"))
    assert fused.arena_bytes <= plain.arena_bytes
    steps = [step for step in fused.steps if step.node.op.name == "conv+add" and isinstance(step, BackwardStep)]
    assert [step.dx[0].same_place(step.y[0]) for step in steps] == [True] * 3


def test_training_steps_equal_pytorch() -> None:
    """Several, by gradient descent from equal weights."""
    torch_graph = pytest.importorskip("tests.torch_graph", reason="PyTorch is not installed")
    keras.config.set_floatx("float64")
    keras.utils.set_random_seed(3)
    model = NETWORKS["preactivation"](12, 3)
    rng = np.random.default_rng(1)
    memory = Memory()
    executor = Executor(build_plan(trace(model, "preactivation", 12, 5)), memory)
    losses = []
    for _ in range(4):
        inputs = {"x": rng.normal(size=(5, 12, 12, 3)), "y_true": rng.integers(0, 10, 5)}
        expected, gradients = torch_graph.evaluate(trace(model, "preactivation", 12, 5), inputs)
        found = executor.run(inputs)
        np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-9, atol=1e-11)
        for variable in memory.store.variables:
            gradient = memory.store.gradient_of(variable)
            np.testing.assert_allclose(gradient, gradients[variable.path], rtol=1e-7, atol=1e-10)
            variable.value[...] -= 0.1 * gradients[variable.path]
        losses.append(float(found["loss"]))
    assert len(set(losses)) == 4


ALGORITHMS = ("auto", "direct", "convgemm", "im2col", "winograd")


def random_network(seed: int) -> keras.Model:
    """Convolutions, additions, activations, normalizations and concatenations of a few images, as chance has it."""
    random = np.random.default_rng(seed)
    inputs = keras.Input((SIZE, SIZE, 3))
    images = [layers.Conv2D(3, 3, padding="same")(inputs)]

    def pick() -> Any:
        return images[max(int(random.integers(len(images))), int(random.integers(len(images))))]

    def convolution(x: Any) -> Any:
        kernel_size = int(random.choice([1, 3]))
        forward = ALGORITHMS[random.integers(len(ALGORITHMS) - (kernel_size == 1))]
        options = {"use_bias": bool(random.integers(2)), "algorithm": {"forward": forward}}
        options["activation"] = "tanh" if random.integers(6) == 0 else None
        return layers.Conv2D(3, kernel_size, padding="same", **options)(x)

    for _ in range(int(random.integers(5, 14))):
        kind = random.integers(6)
        if kind == 0:
            made = convolution(pick())
        elif kind <= 2:
            pair = [pick(), convolution(pick())]
            made = layers.Add()(pair[:: random.choice([1, -1])])
            if random.integers(3) == 0:
                made = layers.Activation(str(random.choice(["relu", "tanh"])))(made)
        elif kind == 3:
            made = layers.ReLU()(layers.BatchNormalization()(pick()))
        elif kind == 4:
            made = layers.Add()([convolution(pick()), convolution(pick())])
        else:
            part = pick()
            made = convolution(layers.Concatenate()([part, pick()]))
            made = layers.Add()([made, part])
        images.append(made)
    last = layers.GlobalAveragePooling2D()(images[-1])
    return keras.Model(inputs, layers.Dense(10)(last))


def inference(model: keras.Model) -> Graph:
    graph = Graph()
    with graph:
        graph.outputs = {"y": model(graph.input("x", Spec((3, SIZE, SIZE, 3), "float64")), training=False)}
    return graph


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_equal_pytorch(seed: int) -> None:
    """Training and inference: residuals in slices, in place, shared, with gradients that are passed on."""
    torch_graph = pytest.importorskip("tests.torch_graph", reason="PyTorch is not installed")
    keras.config.set_floatx("float64")
    keras.utils.set_random_seed(seed)
    model = random_network(seed)
    rng = np.random.default_rng(seed)
    inputs = {"x": rng.normal(size=(3, SIZE, SIZE, 3)), "y_true": rng.integers(0, 10, 3)}
    expected, _ = torch_graph.evaluate(inference(model), {"x": inputs["x"]})
    found = Executor(build_plan(inference(model)), Memory()).run({"x": inputs["x"]})
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-8, atol=1e-9)
    expected, gradients = torch_graph.evaluate(trace(model, "random", SIZE, 3), inputs)
    memory = Memory()
    found = Executor(build_plan(trace(model, "random", SIZE, 3)), memory).run(inputs)
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-8, atol=1e-9)
    for variable in memory.store.variables:
        gradient = memory.store.gradient_of(variable)
        np.testing.assert_allclose(gradient, gradients[variable.path], rtol=1e-6, atol=1e-8)


def test_random_networks_have_all_that_is_tested() -> None:
    keras.config.set_floatx("float64")
    found: set[tuple[bool, bool]] = set()
    for seed in range(40):
        if len(found) == 4:
            break
        plan = build_plan(inference(random_network(seed)))
        steps = [step for step in plan.steps if step.node.op.name == "conv+add"]
        found |= {(step.y[0].same_place(step.x[-1]), step.x[-1].is_slice) for step in steps}
    assert found == {(False, False), (True, False), (False, True), (True, True)}
