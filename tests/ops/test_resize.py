"""Operators that change the extents of images, against NumPy's."""

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.ops.resize import Crop, Pad, Upsample
from tests.ops.harness import check_op, normal
from tests.reference.shape import bilinear, nearest


def test_crop():
    check_op(Crop(((1, 2), (0, 3))), normal(3, 6, 7, 5), reference=lambda x: x[:, 1:4, :4])


@pytest.mark.parametrize("mode", ["constant", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [((0, 0), (1, 2), (3, 0), (0, 0)), ((1, 0), (2, 2), (1, 3), (1, 2))], ids=str)
def test_pad(padding, mode):
    x = normal(2, 3, 4, 5)
    check_op(Pad(padding, mode), x, reference=lambda x: np.pad(x, padding, mode))
    if mode == "constant":
        check_op(Pad(padding, mode, 1.5), x, reference=lambda x: np.pad(x, padding, constant_values=1.5))


@pytest.mark.parametrize("size", [(2, 2), (1, 3), (3, 1)], ids=str)
@pytest.mark.parametrize(("interpolation", "reference"), [("nearest", nearest), ("bilinear", bilinear)])
def test_upsample(size, interpolation, reference):
    for shape in [(2, 3, 4, 5), (1, 1, 2, 3), (3, 2, 1, 1), (4, 9, 11, 17)]:
        check_op(Upsample(size, interpolation), normal(*shape), reference=lambda x: reference(x, size))


def test_errors():
    with pytest.raises(ValueError, match="at most 2"):
        ops.pad(normal(3), 3, "reflect")
    with pytest.raises(ValueError, match="'nearest' or 'bilinear', got 'bicubic'"):
        Upsample((2, 2), "bicubic")
    with pytest.raises(ValueError, match="nothing is left"):
        Crop(((2, 2), (0, 0)))(normal(1, 4, 4, 1))
