"""Extents that are not known are as large as a layer needs them."""

from __future__ import annotations

import pytest

import pydtconv as keras
from pydtconv import layers

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
