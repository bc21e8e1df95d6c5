"""Gradients that are applied while backward runs: each complete, once, and after the last read of its variable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, optimizers
from pydtconv.graph import Executor, Memory, ParameterStore, Updates, build_plan
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.graph.schedule.steps import UpdateStep
from tests.graph.networks import NETWORKS
from tests.graph.schedule.test_schedule import random_graph
from tests.graph.toy import reference
from tests.marks import slow


class Spoiler:
    """An updater that notes the gradients and makes what it updates unusable."""

    def __init__(self) -> None:
        self.store: ParameterStore | None = None
        self.found: np.ndarray | None = None
        self.ended = False

    def begin(self, store: ParameterStore) -> None:
        self.store, self.found, self.ended = store, np.full(store.size, np.nan), False

    def bind_part(self, part: slice, gradients: np.ndarray) -> Callable[[], None]:
        def apply() -> None:
            assert np.isnan(self.found[part]).all()
            self.found[part] = gradients
            self.store.parameters[part] = np.nan

        return apply

    def end(self) -> None:
        self.ended = True


@pytest.mark.parametrize("seed", [*range(10), *map(slow, range(10, 60))])
@pytest.mark.parametrize("size", [4, 12, 40])
def test_random_graph_reads_no_variable_after_its_update(seed: int, size: int, monkeypatch) -> None:
    monkeypatch.setattr(Graph, "thresholds", Thresholds(applied_gradients=0))
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, size, training=True)
    x = rng.normal(size=(2, 3, 2, 4))
    values, gradients = reference(graph, {"x": x})
    chosen = [node.outputs[0] for node in graph.nodes if rng.random() < 0.3]
    updater, memory = Spoiler(), Memory()
    executor = Executor(build_plan(graph, recompute=chosen, updates=Updates()), memory, updater)
    results = executor.run({"x": x})
    assert updater.ended is bool(executor.plan.gradient_order)
    for name, tensor in graph.outputs.items():
        np.testing.assert_allclose(results[name], values[tensor], rtol=1e-9, atol=1e-12)
    for tensor in executor.plan.gradient_order:
        part = memory.store.slice_of(tensor.variable)
        np.testing.assert_allclose(updater.found[part].reshape(tensor.shape), gradients[tensor], rtol=1e-9, atol=1e-9)
    assert executor.plan.gradient_bytes == 0


def trained(make_optimizer, early: bool, build, steps: int = 3):
    keras.utils.set_random_seed(5)
    model = build()
    model.compile(make_optimizer(), "sparse_categorical_crossentropy")
    model._pydt_steps.memory.keeps_gradients = not early
    rng = np.random.default_rng(1)
    x, y = rng.random((4, 32, 32, 3), np.float32), rng.integers(0, 10, 4)
    losses = [float(model.train_on_batch(x, y)) for _ in range(steps)]
    plan = model.plan(4)
    assert plan.applies_gradients is early
    assert any(isinstance(step, UpdateStep) and step.rows is not None for step in plan.steps) is (
        early and model.optimizer.works_in_rows
    )
    return losses, [v.numpy() for v in (*model.weights, *model.optimizer.variables)], model


def plain():
    return NETWORKS["plain"](32, 4)


def vgg16():
    return keras.applications.build("smallvgg16", input_shape=(32, 32, 3), classes=10)


NAMES = ("SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop")
OPTIONS = [
    {"clipnorm": 0.01},
    {"clipvalue": 1e-4},
    {"weight_decay": 0.1},
    {"use_ema": True, "ema_overwrite_frequency": 2},
    {"gradient_accumulation_steps": 2},
    {"loss_scale_factor": 8.0},
]
CASES = [(name, {}) for name in NAMES] + [("Adam", options) for options in OPTIONS]
QUICK = [("SGD", {}), ("Adam", {"gradient_accumulation_steps": 2})]


def check_bits(name, options, build) -> None:
    def make():
        return getattr(optimizers, name)(**options)

    late, early = (trained(make, early, build) for early in (False, True))
    assert late[0] == early[0]
    for a, b in zip(late[1], early[1], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("name", "options"),
    [case if case in QUICK else slow(*case) for case in CASES],
    ids=lambda value: value if isinstance(value, str) else str(value),
)
def test_bits_are_those_of_gradients_applied_at_the_end(name, options, monkeypatch) -> None:
    monkeypatch.setattr(Graph, "thresholds", Thresholds(applied_gradients=1 << 10, gradient_rows=1 << 11))
    check_bits(name, options, plain)


@pytest.mark.slow
def test_bits_of_a_large_network(monkeypatch) -> None:
    monkeypatch.setattr(Graph, "thresholds", Thresholds(gradient_rows=1 << 18))
    check_bits("AdamW", {}, vgg16)


@pytest.mark.slow
def test_gradients_stay_where_somebody_reads_all_of_them() -> None:
    model = vgg16()
    for optimizer, applied in (optimizers.SGD(global_clipnorm=1.0), False), (optimizers.SGD(), True):
        model.compile(optimizer, "sparse_categorical_crossentropy")
        assert model.plan(2).applies_gradients is applied
    saved = model.plan(2).peak_bytes
    model._pydt_steps.memory.keeps_gradients = True
    plan = model.plan(2)
    assert not plan.applies_gradients
    assert plan.gradient_bytes == plan.trainable_bytes
    assert saved < plan.peak_bytes - plan.gradient_bytes // 2


def test_gradients_of_small_models_are_applied_at_the_end() -> None:
    model = keras.applications.build("mnist_convnet", input_shape=(28, 28, 1), classes=10)
    model.compile("sgd", "sparse_categorical_crossentropy")
    assert not model.plan(2).applies_gradients


def test_a_plan_that_applies_gradients_needs_an_optimizer(monkeypatch) -> None:
    monkeypatch.setattr(Graph, "thresholds", Thresholds(applied_gradients=1 << 10))
    model = plain()
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match="expected an optimizer"):
        Executor(model.plan(1), Memory())


def test_a_step_that_is_broken_off_is_not_counted_and_the_next_one_is_whole() -> None:
    fail = [False]

    class Breaks(layers.NumpyLayer):
        def forward(self, x):
            return x.copy()

        def backward(self, dy, x):
            if fail[0]:
                raise RuntimeError("interrupted")
            return dy

    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((64,)), layers.Dense(64), Breaks(), layers.Dense(20000), layers.Dense(2)])
    model.compile(optimizers.SGD(0.1), "mse")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 64)), rng.normal(size=(4, 2))
    assert model.plan(4).applies_gradients
    model.train_on_batch(x, y)
    before = [v.numpy() for v in model.weights]
    fail[0] = True
    with pytest.raises(RuntimeError, match="interrupted"):
        model.train_on_batch(x, y)
    changed = [not np.array_equal(v.numpy(), b) for v, b in zip(model.weights, before, strict=True)]
    assert changed == [False, False, True, True, True, True]
    assert int(model.optimizer.iterations) == 1
    fail[0] = False
    model.train_on_batch(x, y)
    assert int(model.optimizer.iterations) == 2
