"""Convolution on NumPy arrays: images NHWC, filters HWIO, float32 and float64.

    p = ConvProblem(n=8, ih=32, iw=32, ci=64, co=128, kernel=(3, 3), padding="same")
    y = forward(p, x, w, bias)
    dx, dw = backward_data(p, dy, w), backward_weights(p, x, dy)

`explain(p, "forward")` tells which algorithms can do it, `algorithms(p, "forward")` names them by expected speed,
`workspace_bytes` says what memory each needs; `config.set_conv_variant` makes a named choice active.  All four tell of
the active device, or of the one named.
"""

from pydtconv.conv.by_device import algorithms, choose, explain, workspace_bytes
from pydtconv.conv.functional import backward_data, backward_weights, forward
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import VARIANTS

__all__ = [
    "VARIANTS",
    "ConvProblem",
    "algorithms",
    "backward_data",
    "backward_weights",
    "choose",
    "explain",
    "forward",
    "workspace_bytes",
]
