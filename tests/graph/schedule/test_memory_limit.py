"""Memory limits: met where they can be, by smaller workspaces and recomputation, with equal weights after training."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.graph import MemoryLimitError
from tests.graph.networks import NETWORKS
from tests.marks import slow

QUICK = ["residual"]


def compiled(name: str) -> keras.Model:
    keras.utils.set_random_seed(5)
    model = NETWORKS[name](32, 16)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=name != "plain")
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss)
    return model


def smallest(model: keras.Model, batch: int, variant: str | None = None) -> int:
    with pytest.raises(MemoryLimitError, match="the smallest plan") as error:
        model.plan(batch, memory_limit=1, variant=variant)
    return error.value.smallest_bytes


@pytest.mark.parametrize("variant", ["AUTO", slow("CGT+PM")])
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS if name not in QUICK)]
)
def test_every_limit_from_the_smallest_on_is_met(name: str, variant: str) -> None:
    model = compiled(name)
    free = model.plan(16, variant=variant)
    least = smallest(model, 16, variant)
    assert least <= free.peak_bytes
    with pytest.raises(MemoryLimitError, match=str(least)):
        model.plan(16, memory_limit=least - 1, variant=variant)
    times = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        limit = int(least + share * (free.peak_bytes - least))
        plan = model.plan(16, memory_limit=limit, variant=variant)
        assert plan.peak_bytes <= limit
        times.append(plan.recompute_seconds)
    # plans that keep the fastest algorithms come before those with the least recomputing, however little these differ
    assert all(after <= 1.05 * before for before, after in itertools.pairwise(times)), times
    assert model.plan(16, memory_limit=free.peak_bytes, variant=variant).peak_bytes == free.peak_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["residual", "dense"])
def test_training_within_a_limit_has_the_same_weights(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((48, 32, 32, 3), np.float32), rng.integers(0, 10, 48)
    before = keras.config.conv_variant()
    keras.config.set_conv_variant("CGT+PM")  # whose algorithms no limit changes
    try:
        weights = []
        for limited in (False, True):
            model = compiled(name)
            limit = smallest(model, 16) if limited else None
            if limited:
                plan = model.plan(16, memory_limit=limit)
                assert plan.peak_bytes < 0.97 * model.plan(16).peak_bytes
                assert plan.recompute_seconds > model.plan(16).recompute_seconds
            model.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0, memory_limit=limit)
            weights.append([w.numpy() for w in model.weights])
    finally:
        keras.config.set_conv_variant(before)
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_convolutions_are_recomputed_and_the_table_says_so() -> None:
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((32, 32, 3))])
    for _ in range(12):
        model.add(layers.Conv2D(16, 3, padding="same", activation="relu"))
    model.add(layers.GlobalAveragePooling2D())
    model.compile("sgd", "mse")
    free = model.plan(16)
    assert not free.recomputed
    plan = model.plan(16, memory_limit=int(0.6 * free.peak_bytes))
    assert {node.op.name for node in plan.recomputed} == {"conv"}
    assert str(plan).count("recomputed") == len(plan.recomputed)
    x, y = np.random.default_rng(0).random((16, 32, 32, 3), np.float32), np.zeros((16, 16))
    initial = model.get_weights()
    results = []
    for limit in (None, int(0.6 * free.peak_bytes)):
        model.set_weights(initial)
        model.fit(x, y, batch_size=16, epochs=3, verbose=0, memory_limit=limit)
        results.append(model.get_weights())
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def mobile() -> keras.Model:
    """Blocks of a MobileNetV2: images between narrower ones, normalized as they are read."""
    keras.utils.set_random_seed(5)
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(24, 3, padding="same")(inputs)
    for _ in range(3):
        y = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(96, 1, use_bias=False)(x)))
        y = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)
        y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
        x = layers.add([x, layers.BatchNormalization()(layers.Conv2D(24, 1, use_bias=False)(y))])
    model = keras.Model(inputs, layers.Dense(4)(layers.GlobalAveragePooling2D()(x)))
    model.compile(keras.optimizers.SGD(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def test_results_of_depthwise_convolutions_come_first_and_weights_are_the_same() -> None:
    """Algorithms stay, and images that are normalized as they are read stay out of memory: so do bits."""
    rng = np.random.default_rng(0)
    x, y = rng.random((16, 32, 32, 3), np.float32), rng.integers(0, 4, 16)
    free = mobile().plan(16)
    assert not any(node.op.name == "depthwiseconv" for node in free.recomputed)
    weights = []
    for share, count in ((1, 0), (0.9, 1), (0.8, 2)):
        model, limit = mobile(), int(share * free.peak_bytes)
        plan = model.plan(16, memory_limit=limit)
        assert plan.peak_bytes <= limit
        assert len(plan.graph.elided) == len(free.graph.elided) == 6
        assert sum(node.op.name == "depthwiseconv" for node in plan.recomputed) == count
        model.fit(x, y, batch_size=16, epochs=3, verbose=0, memory_limit=limit)
        weights.append([w.numpy() for w in model.weights])
    for other in weights[1:]:
        for a, b in zip(weights[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_limit_that_is_met_without_offload_is_met_with_it(tmp_path: Path) -> None:
    model = mobile()
    least = smallest(model, 16)
    with pytest.raises(MemoryLimitError, match="the smallest plan") as error:
        model.plan(16, memory_limit=1, offload=True)
    assert error.value.smallest_bytes <= least
    x, y = np.random.default_rng(0).random((16, 32, 32, 3), np.float32), np.zeros(16)
    model.fit(x, y, batch_size=16, verbose=0, memory_limit=least, offload=tmp_path)


def test_fit_with_a_limit_that_cannot_be_met_changes_nothing() -> None:
    model = compiled("plain")
    before = model.get_weights()
    with pytest.raises(MemoryLimitError, match="expected at least"):
        model.fit(np.zeros((16, 32, 32, 3), np.float32), np.zeros(16), batch_size=16, verbose=0, memory_limit=1000)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
