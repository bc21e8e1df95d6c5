"""What a plan says of itself, memory limits, hooks, the flat store, and the rewriting of channels_first models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Executor, Graph, Memory, MemoryLimitError, ParameterStore, Variable, build_plan
from pydtconv.ops.base import Spec
from tests.graph.networks import NETWORKS, trace


def plan_of(name: str, **options):
    model = NETWORKS[name](16, 4)
    return build_plan(trace(model, name, 16, 4), **options)


def test_table_names_nodes_algorithms_and_the_peak() -> None:
    text = str(plan_of("residual", variant="CGT", slots=1))
    assert "convgemm im2col convgemm_trans" in text
    assert "batchnorm" in text
    assert "predicted peak" in text


def test_picture_is_written(tmp_path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = plan_of("dense").plot(tmp_path / "memory.png")
    assert path.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(("variant", "options"), [("AUTO", {"algorithm": {"backward_weights": "rdx"}}), ("RDX", {})])
def test_the_image_that_rdx_gathers_is_counted(variant, options) -> None:
    """Placed ahead, or allocated in the call: nine times the image of 8 x 56 x 56 x 16 float32, for 3x3 filters."""

    def peak(variant, **options) -> int:
        image = keras.Input((56, 56, 16))
        y = layers.Conv2D(16, 3, padding="same", **options)(layers.Conv2D(16, 3, padding="same", **options)(image))
        model = keras.Model(image, layers.GlobalAveragePooling2D()(y))
        model.compile("sgd", "mse")
        return model.plan(8, variant=variant).peak_bytes

    gathered = 9 * 8 * 56 * 56 * 16 * 4
    assert 0.9 * gathered < peak(variant, **options) - peak("CGT+DG+PM") < 1.2 * gathered


def test_peak_step_holds_the_most_and_the_arena_holds_that() -> None:
    plan = plan_of("dense")
    live = plan.live_bytes()
    assert live[plan.peak_step()] == max(live)
    assert sum(storage.nbytes for storage in plan.live_at(plan.peak_step())) == max(live)
    assert max(live) <= plan.arena_bytes <= 1.1 * max(live)


def test_unknown_variant_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"expected one of BASE, .*, AUTO, got 'CTG'"):
        plan_of("plain", variant="CTG")


def test_memory_limit_takes_smaller_workspaces_or_names_the_smallest_possible() -> None:
    free = plan_of("residual")
    with pytest.raises(MemoryLimitError, match="the smallest plan") as error:
        plan_of("residual", memory_limit=1000)
    smallest = error.value.smallest_bytes
    assert smallest <= free.peak_bytes
    assert plan_of("residual", memory_limit=smallest).peak_bytes == smallest
    assert plan_of("residual", memory_limit=free.peak_bytes).peak_bytes == free.peak_bytes


def test_workspaces_of_variants_without_persistent_buffers_are_not_placed() -> None:
    base, placed = plan_of("plain", variant="CGT"), plan_of("plain", variant="CGT+PM")
    convolutions = [step for step in base.steps if step.node in base.algorithms]
    assert convolutions
    assert all(step.workspace is None for step in convolutions)
    assert base.transient_bytes > 0
    assert placed.transient_bytes == 0


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def before(self, index, step) -> None:
        self.events.append(("before", index))

    def after(self, index, step) -> None:
        self.events.append(("after", index))

    def gradient_ready(self, part: slice) -> None:
        self.events.append(("ready", part))


def test_hooks_see_every_step_and_gradients_as_growing_prefixes() -> None:
    memory = Memory()
    executor = Executor(plan_of("residual"), memory)
    executor.hooks = recorder = Recorder()
    rng = np.random.default_rng(0)
    executor.run({"x": rng.normal(size=(4, 16, 16, 3)), "y_true": np.arange(4)})
    steps = range(len(executor.plan.steps))
    assert [index for kind, index in recorder.events if kind == "before"] == list(steps)
    assert [index for kind, index in recorder.events if kind == "after"] == list(steps)
    parts = [part for kind, part in recorder.events if kind == "ready"]
    assert memory.store is not None
    assert [memory.store.slice_of(variable) for variable in memory.store.variables] == parts
    assert parts[0].start == 0
    assert all(a.stop <= b.start for a, b in itertools.pairwise(parts))


def test_hooks_of_the_memory_see_every_plan_and_passes_announce_their_parts() -> None:
    memory, model = Memory(), NETWORKS["plain"](16, 4)
    batches = [np.zeros((n, 16, 16, 3)) for n in (4, 2)]
    executors = [Executor(build_plan(trace(model, "plain", 16, len(x))), memory) for x in batches]
    recorder, parts = Recorder(), []
    memory.hooks.append(recorder)
    memory.state.part_done = parts.append
    for executor, x in zip(executors, batches, strict=True):
        executor.run({"x": x, "y_true": np.arange(len(x))})
    count = sum(len(executor.plan.steps) for executor in executors)
    assert sum(kind == "before" for kind, _ in recorder.events) == count
    convolutions = [node for executor in executors for node in executor.plan.algorithms]
    dense = 2 * 2
    assert parts.count("forward") == len(convolutions)
    assert parts.count("backward_weights") == len(convolutions) + dense
    assert parts.count("backward_data") == len(convolutions) + dense - 2  # none for the images
    memory.hooks.clear()
    executors[0].run({"x": batches[0], "y_true": np.arange(4)})
    assert sum(kind == "before" for kind, _ in recorder.events) == count


def test_store_moves_variables_and_refuses_others() -> None:
    a, b = Variable(np.arange(3.0), name="a", dtype="float64"), Variable(np.ones((2, 2)), name="b", dtype="float64")
    store = ParameterStore([a, b])
    a.assign([4, 5, 6])
    np.testing.assert_array_equal(store.parameters[store.slice_of(a)], [4, 5, 6])
    assert b.value.base is store.parameters
    with pytest.raises(KeyError, match="'c' gets no gradient"):
        store.slice_of(Variable(np.ones(1), name="c"))


def test_store_of_several_dtypes_keeps_their_order_and_each_its_numbers() -> None:
    values = {"a": np.arange(5, dtype="float32"), "b": np.arange(3.0) / 7, "c": np.ones((2, 2)) / 3}
    values["d"] = np.full(17, 4, "float32")
    variables = [Variable(value, dtype=value.dtype.name, name=name) for name, value in values.items()]
    store = ParameterStore(variables)
    assert (store.dtype, store.size) == ("uint32", 16 + 16 + 16 + 32)
    assert [*store.runs(slice(0, 80))] == [
        (slice(0, 16), "float32"), (slice(16, 48), "float64"), (slice(48, 80), "float32")
    ]  # fmt: skip
    assert [*store.runs(slice(20, 50))] == [(slice(20, 48), "float64"), (slice(48, 50), "float32")]
    for variable, value in zip(variables, values.values(), strict=True):
        np.testing.assert_array_equal(variable.value, value, strict=True)
        assert variable.value.base is store.parameters
        assert variable.value.ctypes.data % 16 == 0
        store.gradient_of(variable)[...] = value
    found = store.numbers(store.gradients, slice(16, 22), "float64")
    np.testing.assert_array_equal(found, values["b"], strict=True)


def test_loss_that_is_no_scalar_is_refused() -> None:
    graph = Graph(training=True)
    with graph:
        graph.loss = graph.input("x", Spec((3,)))
    with pytest.raises(ValueError, match=r"expected a scalar, got shape \(3,\)"):
        build_plan(graph)


def channels_first(size: int) -> keras.Model:
    first = {"data_format": "channels_first"}
    inputs = keras.Input((3, size, size))
    x = layers.Conv2D(4, 3, padding="same", activation="relu", **first)(inputs)
    x = layers.BatchNormalization(axis=1)(x)
    x = layers.Add()([x, layers.Conv2D(4, 3, padding="same", **first)(x)])
    x = layers.Concatenate(axis=1)([layers.ReLU()(x), layers.MaxPooling2D(3, 1, "same", **first)(x)])
    return keras.Model(inputs, layers.GlobalAveragePooling2D(**first)(x))


def test_transposes_of_a_channels_first_model_meet_and_cancel() -> None:
    graph = Graph(training=True)
    with graph:
        y = channels_first(8)(graph.input("x", Spec((2, 3, 8, 8))), training=True)
        graph.loss = ops.mean(y)
    plan = build_plan(graph)
    kinds = [type(node.op).__name__ for node in plan.graph.nodes]
    assert kinds.count("Transpose") == 1  # of the input
    assert kinds[0] == "Transpose"


def test_variable_read_through_a_reshape() -> None:
    weights = Variable(np.arange(6.0), name="w", dtype="float64")
    graph = Graph(training=True)
    with graph:
        x = graph.input("x", Spec((4, 3), "float64"))
        graph.loss = graph.outputs["loss"] = ops.sum(ops.matmul(x, ops.reshape(weights, (3, 2))))
    memory = Memory()
    x = np.random.default_rng(0).normal(size=(4, 3))
    found = Executor(build_plan(graph), memory).run({"x": x})
    np.testing.assert_allclose(found["loss"], (x @ np.arange(6.0).reshape(3, 2)).sum())
    assert memory.store is not None
    np.testing.assert_allclose(memory.store.gradient_of(weights), np.repeat(x.sum(0), 2))
