"""Functions of one argument, activations among them, as the C library has them (cext/cuda/activations.h)."""

from __future__ import annotations

from pydtconv._ext import conv as ext

#: by kind: "fused" (operators can apply it to their results), "from output" (its derivative follows from y, as that of
#: fused ones does) or "from input" (from x)
GROUPS: dict[str, str] = ext.activations()
#: the C library's codes; None is linear
CODES: dict[str | None, int] = {None: 0, **{kind: code for code, kind in enumerate(GROUPS)}}
#: of these what may follow a convolution
FUSED = {kind: code for kind, code in CODES.items() if kind is None or GROUPS[kind] == "fused"}
#: what reads a normalized image can apply these on the way, and finds their slope from x
OF_NORMALIZED = (None, "linear", "relu", "relu6", "silu", "hard_silu")
