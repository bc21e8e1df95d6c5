"""Extents that are not known are as large as a layer needs them."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops

KINDS_OF_WINDOWS = ("MaxPooling", "AveragePooling", "Conv", "DepthwiseConv", "SeparableConv", "Cropping")
KINDS = [(kind, rank) for kind in KINDS_OF_WINDOWS for rank in (1, 2, 3) if hasattr(layers, f"{kind}{rank}D")]
KINDS.remove(("Conv", 3))  # an image of such extents is too large


@pytest.mark.parametrize("size", [700, 1024, 10_000])
@pytest.mark.parametrize(("kind", "rank"), KINDS, ids=lambda value: str(value))
def test_windows_and_borders_of_any_size(kind, rank, size):
    filters = {"Conv": (2,), "SeparableConv": (2,)}.get(kind, ())
    x = keras.Input((*[None] * rank, 3))
    for axis in range(rank):
        extents = [1] * rank
        extents[axis] = size
        y = getattr(layers, f"{kind}{rank}D")(*filters, extents if rank > 1 else size)(x)
        assert y.shape == (None, *[None] * rank, 2 if filters else 3)


@pytest.mark.parametrize("kind", ["MaxPooling", "AveragePooling", "Cropping"])
def test_windows_and_borders_that_are_large_along_all_axes(kind):
    y = getattr(layers, f"{kind}2D")(700)(keras.Input((None, None, 3)))
    assert y.shape == (None, None, None, 3)


class Mixed(layers.Layer):
    """Tokens of all samples of a batch together, which have a shape of so many."""

    def call(self, x):
        batch, steps, width = ops.shape(x)
        tokens = ops.reshape(x, (60, width)) * 2.0
        return ops.reshape(tokens, (batch, steps, width))


def test_a_shape_that_a_call_fixes_says_the_batch():
    x = keras.Input((12, 3))
    assert keras.Sequential([Mixed()])(x).shape == (5, 12, 3)
    model = keras.Model(x, Mixed()(x))
    assert model.predict(np.ones((10, 12, 3)), batch_size=5, verbose=0).shape == (10, 12, 3)
    with pytest.raises(ValueError, match="'mixed': reshape: expected a shape of"):
        Mixed(name="mixed")(keras.Input((45, 7)))
