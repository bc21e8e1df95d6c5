"""Activations and other functions of one argument, and the bias addition.

y = f(x), element by element.  The derivative of `FROM_OUTPUT`'s kinds is computed from y, so that x need not be kept
and y may take its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydtconv.ops.base import Op, Retained, Spec
from pydtconv.ops.checks import same_float, same_real

#: kinds that other operators can fuse; alpha: the slope of leaky_relu
FUSABLE = (
    "linear",
    "relu",
    "relu6",
    "leaky_relu",
    "sigmoid",
    "tanh",
)

#: kinds that a dense layer can fuse as well, keeping what they are applied to
SMOOTH = ("gelu", "gelu_tanh", "silu")

#: kinds whose derivative follows from y alone
FROM_OUTPUT = (
    *FUSABLE,
    "elu",
    "exponential",
    "softplus",
    "hard_sigmoid",
    "sqrt",
    "reciprocal",
    "affine",
)

#: kinds whose derivative needs x
FROM_INPUT = (
    "clip",
    "relu_general",
    "gelu",
    "gelu_tanh",
    "silu",
    "softsign",
    "hard_silu",
    "mish",
    "log_sigmoid",
    "threshold",
    "tanh_shrink",
    "hard_shrink",
    "soft_shrink",
    "squareplus",
    "sparse_plus",
    "abs",
    "square",
    "log",
    "power",
    "sign",
)

KINDS = (*FROM_OUTPUT, *FROM_INPUT)


def parameters(kind: str, alpha: float | None, beta: float | None, gamma: float | None) -> tuple[float, float, float]:
    """The parameters of a kind with defaults filled in; their meaning is in cext/include/dtconv_nn_elem.h."""
    defaults = {
        "leaky_relu": (0.2, 0, 0),
        "elu": (1, 1, 1),
        "clip": (-1, 1, 1),
        "hard_sigmoid": (1 / 6, 0, 0),
        "affine": (1, 0, 0),
        "relu_general": (0, float("inf"), 0),
        "threshold": (0, 0, 0),
        "hard_shrink": (0.5, 0, 0),
        "soft_shrink": (0.5, 0, 0),
        "squareplus": (4, 0, 0),
        "power": (1, 0, 0),
    }
    given, default = (alpha, beta, gamma), defaults.get(kind, (0, 0, 0))
    first, second, third = (float(d if g is None else g) for g, d in zip(given, default, strict=True))
    return first, second, third


def check_fusable(activation: str | None, kinds: tuple[str, ...] = FUSABLE) -> None:
    """Raises ValueError for a kind that cannot be fused; None is linear."""
    if activation is not None and activation not in kinds:
        raise ValueError(f"activation: expected one of {', '.join(kinds)}, got {activation!r}")


@dataclass(frozen=True)
class Activation(Op):
    """y = f(x); kind is a key of `KINDS`, alpha, beta, gamma its parameters (None: Keras's defaults)."""

    kind: str
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Activation: expected kind to be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.kind in ("elu", "leaky_relu") and self.parameters[0] < 0:
            raise ValueError(f"{self.kind}: expected a slope of 0 or more, got {self.parameters[0]}")

    @property
    def name(self) -> str:
        return self.kind

    @property
    def parameters(self) -> tuple[float, float, float]:
        return parameters(self.kind, self.alpha, self.beta, self.gamma)

    def infer(self, *inputs: Spec) -> Spec:
        same_float(self.kind, *inputs)
        return inputs[0]

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        if self.kind in ("linear", "affine", "sign"):
            return Retained()
        return Retained(y=(0,)) if self.kind in FROM_OUTPUT else Retained(x=(0,))


@dataclass(frozen=True)
class Bias(Op):
    """y = x + b over the last axis: x (..., c), b (c,).  db is the sum of dy over all other axes."""

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    passes_dy: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0, 1)

    def reals(self, count: int) -> tuple[int, ...]:
        return (1,)

    def infer(self, *inputs: Spec) -> Spec:
        same_real("bias", *inputs)
        x, b = inputs
        if len(b.shape) != 1 or not x.shape or x.shape[-1] != b.shape[0]:
            raise ValueError(f"Bias: expected b of shape ({x.shape[-1] if x.shape else '?'},), got {b.shape}")
        return x
