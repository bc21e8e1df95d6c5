"""Mean and variance of each channel of an image, as a tensor that passes from what computes the image to who reads it.

The tensor is an image itself, (2, 1, 1, c), the mean first, so that the moments of a concatenation along the channels
are the concatenation of those of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydtconv.dtypes import real
from pydtconv.ops.base import Op, Reasons, Spec, is_image
from pydtconv.ops.checks import check_float


def moments_spec(x: Spec) -> Spec:
    """Spec of the moments of an image."""
    return Spec((2, 1, 1, x.shape[-1]), real(x.dtype))


@dataclass(frozen=True)
class Moments(Op):
    """Mean and biased variance of x (n, *spatial, c) over all but the last axis, (2, 1, 1, c).  Not differentiated."""

    nondifferentiable = (0,)
    lacks: ClassVar[Reasons] = {"gradient": "plans alone make it", "onnx": "plans alone make it"}

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        if not is_image(x.shape):
            raise ValueError(f"Moments: expected an image (n, *spatial, c) of one to three axes, got shape {x.shape}")
        check_float("Moments", "x", x.dtype)
        return moments_spec(x)
