"""Spectra that are kept for backward, or in it: where, what that costs, and that no bit depends on it."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.conv import ConvProblem
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.kept_transforms import kept, kept_besides
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.graph.plan import MemoryLimitError
from pydtconv.ops.base import Spec
from tests.graph.tables import without


def network(x):
    x = layers.Conv2D(24, 9, padding="same", activation="relu")(x)
    x = layers.Conv2D(16, 11, padding="same")(x)
    return layers.Conv2D(8, 3, strides=2)(x)


def traced(make=network, shape=(4, 24, 24, 16)) -> Graph:
    keras.utils.set_random_seed(3)
    graph = Graph(training=True)
    with graph:
        y = make(graph.input("x", Spec(shape, keras.config.floatx())))
        graph.outputs = {"y": y}
        graph.loss = ops.Mean()(ops.Multiply()(y, y))
    return graph


def run(graph: Graph, **options):
    memory = Memory()
    executor = Executor(build_plan(graph, **options), memory)
    x = np.random.default_rng(1).normal(size=graph.inputs["x"].shape)
    for _ in range(2):
        y = executor.run({"x": x})["y"].copy()
    return executor.plan, y, memory.store.gradients.copy()


def algorithms(plan):
    return [tuple(names.values()) for names in plan.algorithms.values()]


def keepable(plan, name):
    return {node: each for node, every in plan.graph.kept.items() for each in every if each.name == name}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_spectra_are_kept_and_no_bit_depends_on_it(dtype):
    keras.config.set_floatx(dtype)
    plan, *found = run(traced())
    kept_nodes = list(keepable(plan, "spectra"))
    assert {node.inputs[1].shape[0] for node in kept_nodes} <= {9, 11}
    assert len(kept_nodes) == 2 or (dtype == "float64" and kept_nodes)
    for node in keepable(plan, "dy_spectra"):
        names = plan.algorithms[node]
        assert TABLE[names["backward_data"]].basis == TABLE[names["backward_weights"]].basis is not None
    for node in kept_nodes:
        names = plan.algorithms[node]
        assert names["forward"] == names["backward_weights"]
        assert TABLE[names["forward"]].basis is not None
    total = sum(each.spec.nbytes for every in plan.graph.kept.values() for each in every)
    assert sum(row["saved_bytes"] for row in plan.rows()) == total
    none, *want = run(traced(), recompute=())
    assert not none.graph.kept
    assert algorithms(none) == algorithms(plan)
    assert all(np.array_equal(mine, other) for mine, other in zip(found, want, strict=True))
    plain, *reference = run(traced(), passes=without("kept-spectra"))
    assert not plain.graph.kept
    for mine, other in zip(found, reference, strict=True):
        assert np.abs(mine - other).max() <= (1e-5 if dtype == "float32" else 1e-13) * np.abs(other).max()


def test_a_memory_limit_keeps_less():
    plan, *found = run(traced())
    most = plan.peak_bytes
    some, *want = run(traced(), memory_limit=most - 1)
    assert some.peak_bytes < most
    assert len(some.graph.kept) < len(plan.graph.kept)
    assert algorithms(some) == algorithms(plan)
    assert all(np.array_equal(mine, other) for mine, other in zip(found, want, strict=True))
    with pytest.raises(MemoryLimitError) as failure:
        build_plan(traced(), memory_limit=1)
    least = build_plan(traced(), memory_limit=failure.value.smallest_bytes)
    assert least.peak_bytes == failure.value.smallest_bytes
    assert not least.graph.kept


def test_spectra_of_images_in_bfloat16_are_float32():
    def of_halves(x):
        for filters in (16, 8):
            x = layers.Conv2D(filters, 5, padding="same", algorithm="fft 28x28", dtype="mixed_bfloat16")(x)
        return layers.Activation("linear", dtype="float32")(x)

    plan, *found = run(traced(of_halves))
    kept_ones = [each for name in ("spectra", "dy_spectra") for each in keepable(plan, name).values()]
    assert [each.spec.dtype for each in kept_ones] == ["float32"] * 3
    none, *want = run(traced(of_halves), recompute=())
    assert not none.graph.kept
    assert all(np.array_equal(mine, other) for mine, other in zip(found, want, strict=True))


def test_named_algorithms_stay():
    def fixed(x):
        return layers.Conv2D(
            16, 9, padding="same", algorithm={"forward": "fft 32x32", "backward_weights": "fft 36x36"}
        )(x)

    def shared(x):
        return layers.Conv2D(16, 9, padding="same", algorithm="fft 32x32")(x)

    assert not build_plan(traced(fixed)).graph.kept
    plan = build_plan(traced(shared))
    assert algorithms(plan) == [("fft 32x32",) * 3]
    assert [[each.name for each in every] for every in plan.graph.kept.values()] == [["spectra"]]


def test_spectra_of_dy_live_in_backward_only():
    """A node without dx has none; a limit that has no room for them leaves the same bits."""

    def first(x):
        return layers.Conv2D(16, 9, padding="same", algorithm="fft 32x32")(x)

    def second(x):
        return first(layers.Conv2D(16, 1, algorithm="direct")(x))

    assert not keepable(build_plan(traced(first)), "dy_spectra")
    plan, *found = run(traced(second))
    (each,) = keepable(plan, "dy_spectra").values()
    steps = [i for i, step in enumerate(plan.steps) if "dy_spectra" in getattr(step, "saved", {})]
    assert len(steps) == 1
    assert steps[0] >= plan.backward_start
    none, *want = run(traced(second), recompute=())
    assert not none.graph.kept
    assert all(np.array_equal(mine, other) for mine, other in zip(found, want, strict=True))
    limited = build_plan(traced(second), memory_limit=plan.peak_bytes - each.spec.nbytes // 2)
    assert limited.peak_bytes <= plan.peak_bytes - each.spec.nbytes // 2


def test_what_cannot_be_kept():
    grouped = ConvProblem(4, 24, 24, 16, 16, (9, 9), padding="same", groups=2)
    assert kept(grouped, dict.fromkeys(("forward", "backward_weights"), "fft 32x32")) is None
    p = ConvProblem(4, 24, 24, 16, 16, (9, 9), padding="same")
    assert kept(p, {"forward": "fft 32x32", "backward_weights": "direct"}) is None
    assert kept(p, {"forward": "fft 32x32", "backward_weights": "fft 36x36"}) is None
    found = kept(p, {"forward": "fft 32x32", "backward_weights": "fft 36x36"}, is_open=True)
    assert found is not None
    assert found.other == found.backward_weights
    assert found.elements == TABLE[found.other].spectra_size(p)


def test_what_cannot_be_kept_of_dy():
    def of(data, weights, groups=1):
        p = ConvProblem(4, 24, 24, 16, 16, (9, 9), padding="same", groups=groups)
        return kept_besides(p, {"backward_data": data, "backward_weights": weights})

    whole = of("fft 32x32", "fft 32x32")
    assert whole is not None
    assert whole.seconds > 0
    p = ConvProblem(64, 32, 32, 64, 64, (7, 7), padding="same")
    names = {"backward_data": "fft 36x36", "backward_weights": "fft 35x35"}
    found = kept_besides(p, names, is_open=True)
    assert found is not None
    assert found.other == found.backward_weights == "fft 35x35"
    assert of("fft 32x32", "fft 36x36") is None  # other bases
    assert of("fft 16x16", "fft 16x16") is None  # windows and pieces
    assert of("fft_overlap_add 16x16", "fft 16x16") is not None
    assert of("fft 16x16", "fft_overlap_add 16x16") is not None
    assert of("fft_overlap_add 16x16", "fft_overlap_add 16x16") is None
    assert of("direct", "fft 32x32") is None
    assert of("fft 32x32", "fft 32x32", groups=2) is None


def test_nothing_is_kept_without_backward():
    graph = traced()
    graph.loss = None
    assert not build_plan(graph).graph.kept
