"""Zeros around an image become a convolution's own padding."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from tests.graph.networks import trace

CASES = {
    "conv": lambda: [layers.ZeroPadding2D(((1, 2), (0, 3))), layers.Conv2D(4, 3, strides=2)],
    "depthwise": lambda: [layers.ZeroPadding2D(1), layers.DepthwiseConv2D(3, strides=2)],
}


def kinds_and_result(parts: list[layers.Layer], x: np.ndarray) -> tuple[list[str], np.ndarray]:
    from pydtconv.graph import build_plan

    model = keras.Sequential([keras.Input(x.shape[1:]), *parts, layers.GlobalAveragePooling2D()])
    plan = build_plan(trace(model, "residual", x.shape[1], len(x)))
    return [type(node.op).__name__ for node in plan.graph.nodes], model.predict(x, verbose=0)


@pytest.mark.parametrize("case", list(CASES))
def test_padding_is_fused(case: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 9, 9, 3)).astype("float32")
    padding, conv = CASES[case]()
    kinds, result = kinds_and_result([padding, conv], x)
    assert "Pad" not in kinds
    padded = np.pad(x, ((0, 0), *padding.padding, (0, 0)))
    expected = np.asarray(conv(padded)).mean((1, 2))
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_padding_that_is_read_twice_stays() -> None:
    inputs = keras.Input((6, 6, 3))
    padded = layers.ZeroPadding2D(1)(inputs)
    y = layers.Conv2D(3, 3, padding="same")(padded)
    z = layers.Add()([y, padded])
    model = keras.Model(inputs, layers.GlobalAveragePooling2D()(layers.Conv2D(2, 3)(z)))
    from pydtconv.graph import build_plan

    plan = build_plan(trace(model, "residual", 6, 2))
    assert "Pad" in [type(node.op).__name__ for node in plan.graph.nodes]
