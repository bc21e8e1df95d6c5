"""Shuffled inputs are gathered straight into the arena of a step, where nothing else reads them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import metrics
from pydtconv.graph import Rows
from pydtconv.trainers.data_adapters.arrays import ArrayData
from tests.trainers.small_models import XS, YS, line


def data(dtype: str = "float32", count: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 9, (count, 64, 64, 3)).astype(dtype), rng.random((count, 1), np.float32)


def model_of(base: type[keras.Model] = keras.Model) -> keras.Model:
    keras.utils.set_random_seed(1)
    x = keras.Input((64, 64, 3))
    y = keras.layers.Dense(1)(keras.layers.GlobalAveragePooling2D()(keras.layers.Conv2D(2, 3, strides=4)(x)))
    model = base(x, y)
    model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    return model


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_weights_are_those_of_batches_gathered_by_hand(dtype) -> None:
    x, y = data(dtype)
    model = model_of()
    order = []
    drawn = ArrayData._drawn_order

    def noted(self: ArrayData) -> np.ndarray | None:
        order.append(drawn(self))
        return order[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArrayData, "_drawn_order", noted)
        model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    assert len(order) == 2
    other = model_of()
    for each in order:
        other.fit(x[each], y[each], batch_size=16, shuffle=False, verbose=0)
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_batch_lies_beside_the_arena(dtype, monkeypatch) -> None:
    monkeypatch.setattr("pydtconv.graph.runtime.rows.PIECE", 1 << 14)
    (x, y), model = data(dtype), model_of()
    model.fit(x, y, batch_size=50, verbose=0)
    tracemalloc.start()
    try:
        model.fit(x, y, batch_size=50, verbose=0)
        assert tracemalloc.get_traced_memory()[1] < 0.5 * x.nbytes
    finally:
        tracemalloc.stop()


def test_metrics_of_the_users_own_get_arrays() -> None:
    class Watching(keras.Model):
        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            seen.append(x)
            return super().compute_metrics(x, y, y_pred, sample_weight)

    seen: list[np.ndarray] = []
    x, y = data()
    model_of(Watching).fit(x, y, batch_size=16, verbose=0)
    assert len(seen) == 4
    assert all(type(each) is np.ndarray for each in seen)


def test_a_step_of_the_users_own_gets_arrays() -> None:
    class Own(keras.Model):
        def train_step(self, data):
            seen.append(data[0])
            return super().train_step(data)

    seen: list[object] = []
    x, y = data()
    model_of(Own).fit(x, y, batch_size=16, verbose=0)
    assert seen
    assert not any(isinstance(each, Rows) for each in seen)


def test_epochs_are_shuffled_differently_and_not_at_all_without_shuffle():
    seen = []

    class Spy(metrics.Metric):
        def update_state(self, y_true, y_pred, sample_weight=None):
            seen.extend(y_true[:, 0].tolist())

        def result(self):
            return 0.0

    model = line(metrics=[Spy(name="spy")])
    model.fit(XS[:, None], YS[:, None], batch_size=4, epochs=2, verbose=0)
    first, second = seen[:10], seen[10:]
    assert sorted(first) == sorted(second)
    assert first != second
    seen.clear()
    model.fit(XS[:, None], YS[:, None], batch_size=4, shuffle=False, verbose=0)
    np.testing.assert_allclose(seen, YS, rtol=1e-6)
