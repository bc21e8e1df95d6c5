"""Recurrent layers over all steps of a sequence as one operator, and one step of them in functions of `pydtconv.ops`.

The inputs' products with their weights are no part of it: a dense layer computes those of all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pydtconv.extents import check_products
from pydtconv.ops.activation import Activation
from pydtconv.ops.base import Cost, Op, Reasons, Retained, Spec, functions
from pydtconv.ops.checks import fits, same_float, same_real
from pydtconv.ops.kinds import FROM_OUTPUT

__all__ = ["Recurrence"]

#: gates of each cell: so many times its units is the width of its weights
GATES = {"simple": 1, "lstm": 4, "gru": 3, "gru_before": 3}


@dataclass(frozen=True)
class Recurrence(Op):
    """The states of a SimpleRNN, an LSTM or a GRU, step by step, from z, the products of its inputs.

    Inputs: z (n, steps, gates * units), the recurrent weights w (units, gates * units), then those that are given:
    b (gates * units,), a bias of h w; h (n, units) and, for an LSTM, c (n, units), the states to start from; mask
    (n, steps), of any dtype.  Outputs: y (n, steps, units), or with sequences=False that of the last step (n, units);
    the last h and, for an LSTM, the last c.

    cell: "simple", "lstm", "gru" (its reset gate multiplies h w + b) or "gru_before" (it multiplies h).  The order of
    gates is Keras's: i f k o, and u r k.  state_activation, gate_activation: kinds of FROM_OUTPUT.
    backwards: z is walked from its last step to its first.  Where mask is 0 a step leaves the states as they are, and
    repeats the output before it, or gives 0 (zero_output).

    Backward keeps the gates and the states of all steps.
    """

    cell: str
    state_activation: str = "tanh"
    gate_activation: str = "sigmoid"
    backwards: bool = False
    sequences: bool = False
    zero_output: bool = False
    has_bias: bool = False
    has_state: bool = False
    has_mask: bool = False

    dense: ClassVar[bool] = True
    accumulates: ClassVar[tuple[int, ...]] = (1,)
    lacks: ClassVar[Reasons] = {"gpu": "recurrent networks train on CPUs"}

    def __post_init__(self) -> None:
        if self.cell not in GATES:
            raise ValueError(f"Recurrence: cell: expected one of {', '.join(GATES)}, got {self.cell!r}")
        for name in ("state_activation", "gate_activation"):
            if getattr(self, name) not in FROM_OUTPUT:
                kinds = ", ".join(FROM_OUTPUT)
                raise ValueError(f"Recurrence: {name}: expected one of {kinds}, got {getattr(self, name)!r}")

    @property
    def name(self) -> str:
        return self.cell

    def of_parts(self, inputs: Sequence[Any]) -> tuple[tuple[Recurrence, Sequence[Any]], ...]:
        """What runs at the same time, each with its inputs."""
        return ((self, inputs),)

    @property
    def state_count(self) -> int:
        return 2 if self.cell == "lstm" else 1

    @property
    def places(self) -> dict[str, int]:
        """The place of each input, by its name."""
        names = ["z", "w"] + ["b"] * self.has_bias + ["h0", "c0"][: self.state_count * self.has_state]
        return {name: i for i, name in enumerate(names + ["mask"] * self.has_mask)}

    @property
    def nondifferentiable(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.places["mask"],) if self.has_mask else ()

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(self.places[name] for name in ("w", "b") if name in self.places)

    def sizes(self, *inputs: Spec) -> tuple[int, int, int]:
        """n, steps, units; an unknown batch as 1."""
        n, steps, _ = inputs[0].shape
        return n or 1, steps or 1, inputs[1].shape[0] or 1

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        places = self.places
        if len(inputs) != len(places):
            raise ValueError(f"{self.cell}: expected inputs {', '.join(places)}, got {len(inputs)} inputs")
        given = dict(zip(places, inputs, strict=True))
        dtype = same_float(self.cell, *(given[name] for name in ("z", "h0", "c0") if name in given))
        same_real(self.cell, given["z"], *(given[name] for name in ("w", "b") if name in given))
        z, w = given["z"], given["w"]
        gates = GATES[self.cell]
        if len(w.shape) != 2 or w.shape[1] != gates * (w.shape[0] or 0):
            raise ValueError(f"{self.cell}: w: expected (units, {gates} * units), got shape {w.shape}")
        units = w.shape[0]
        if len(z.shape) != 3 or z.shape[2] != w.shape[1] or not z.shape[1]:
            raise ValueError(
                f"{self.cell}: z: expected (n, steps, {w.shape[1]}) with one step or more, got shape {z.shape}"
            )
        n, steps, _ = z.shape
        wanted = {"b": (w.shape[1],), "h0": (n, units), "c0": (n, units), "mask": (n, steps)}
        for name, shape in wanted.items():
            if name in given and not fits(given[name].shape, shape):
                raise ValueError(f"{self.cell}: {name}: expected shape {shape}, got {given[name].shape}")
        check_products(self.cell, self.cost("backward", *inputs)["backward"].multiplications)
        y = Spec((n, steps, units) if self.sequences else (n, units), dtype)
        return (y, *[Spec((n, units), dtype)] * self.state_count)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(i for name, i in self.places.items() if name in ("w", "c0", "mask")))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        if not training:
            return {}
        (n, steps, _), units, dtype = inputs[0].shape, inputs[1].shape[0], inputs[0].dtype
        names = ("previous", "cells") if self.cell == "lstm" else ("previous",)
        kept = 1 if self.cell == "simple" else 4
        return {
            "gates": Spec((n, steps, kept * (units or 0)), dtype),
            **dict.fromkeys(names, Spec((n, steps, units), dtype)),
        }

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        n, steps, units = self.sizes(*inputs)
        products = n * steps * units * units * GATES[self.cell] * (1 if direction == "forward" else 2)
        return {direction: Cost(2 * products, products)}

    def formula(self, *inputs: Any) -> Any:
        ops = functions
        given = dict(zip(self.places, inputs, strict=True))
        z, w = given["z"], given["w"]
        n, steps, units = z.shape[0], z.shape[1], w.shape[0]
        nothing = np.zeros((n, units), z.dtype)
        states = [given.get(name, nothing) for name in ("h0", "c0")[: self.state_count]]
        f, g = Activation(self.state_activation), Activation(self.gate_activation)
        y, ys = nothing, []
        for t in reversed(range(steps)) if self.backwards else range(steps):
            new = step(self.cell, f, g, z[:, t], states, w, given.get("b"))
            if self.has_mask:
                kept = ops.cast(given["mask"], "bool")[:, t : t + 1]
                y = ops.where(kept, new[0], nothing if self.zero_output else y)
                states = [ops.where(kept, a, b) for a, b in zip(new, states, strict=True)]
            else:
                y, states = new[0], new
            ys.append(y)
        return (ops.stack(ys, axis=1) if self.sequences else y, *states)


@dataclass(frozen=True)
class BothDirections(Op):
    """Two recurrences of the same cell and sizes at the same time, each on half of the cores.

    Inputs and outputs: those of the first, then those of the second.
    """

    first: Recurrence
    second: Recurrence

    dense: ClassVar[bool] = True
    lacks: ClassVar[Reasons] = {
        "gpu": "recurrent networks train on CPUs",
        "onnx": "files have the operators of the trace: each direction by itself",
    }

    @property
    def name(self) -> str:
        return f"{self.first.cell} twice"

    def of_parts(self, inputs: Sequence[Any]) -> tuple[tuple[Recurrence, Sequence[Any]], ...]:
        """Each with what is its own of all inputs."""
        count = len(self.first.places)
        return (self.first, inputs[:count]), (self.second, inputs[count:])

    def _places(self, own: Callable[[Recurrence], Sequence[int]]) -> tuple[int, ...]:
        return (*own(self.first), *(len(self.first.places) + i for i in own(self.second)))

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._places(lambda part: part.accumulates)

    @property
    def nondifferentiable(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._places(lambda part: part.nondifferentiable)

    def reals(self, count: int) -> tuple[int, ...]:
        return self._places(lambda part: part.reals(count))

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        (_, own), (_, others) = self.of_parts(inputs)
        if self.first.cell != self.second.cell or own[1:2] != others[1:2] or own[0].shape[:2] != others[0].shape[:2]:
            raise ValueError(f"{self.name}: expected one cell and equal sizes, got {self} of {inputs}")
        return tuple(spec for part, own in self.of_parts(inputs) for spec in part.infer(*own))

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=self._places(lambda part: part.retains(needs).x))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        each = [part.saves(*own, training=training) for part, own in self.of_parts(inputs)]
        return {f"{name}{i}": spec for i, saved in enumerate(each) for name, spec in saved.items()}

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        each = [part.cost(direction, *own)[direction] for part, own in self.of_parts(inputs)]
        return {direction: Cost(sum(cost.flops for cost in each), sum(cost.multiplications for cost in each))}

    def formula(self, *inputs: Any) -> Any:
        return tuple(y for part, own in self.of_parts(inputs) for y in part(*own))


def step(
    cell: str,
    f: Callable[[Any], Any],
    g: Callable[[Any], Any],
    z: Any,
    states: Sequence[Any],
    w: Any,
    b: Any = None,
    drops: Sequence[Any] | None = None,
) -> list[Any]:
    """The states after one step of a cell of GATES; z (n, gates * units), states each (n, units).

    f, g: activation and recurrent activation.  b: of h w.  drops: for each gate what multiplies h, (n, units).
    """
    ops = functions
    h, units = states[0], w.shape[0]
    first = 2 * units if cell == "gru_before" else w.shape[1]
    if drops is None:
        product = ops.matmul(h, w[:, :first])
    else:
        columns = range(0, first, units)
        parts = [ops.matmul(h * drop, w[:, j : j + units]) for j, drop in zip(columns, drops, strict=False)]
        product = ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
    if b is not None:
        product = product + b
    if cell == "simple":
        return [f(z + product)]
    if cell == "lstm":
        i, forget, k, o = ops.split(z + product, 4, axis=-1)
        c = g(forget) * states[1] + g(i) * f(k)
        return [g(o) * f(c), c]
    u, r = (g(z[:, part] + product[:, part]) for part in (slice(units), slice(units, 2 * units)))
    if cell == "gru":
        inner = r * product[:, 2 * units :]
    else:
        inner = ops.matmul(r * h if drops is None else r * h * drops[2], w[:, first:])
    k = f(z[:, 2 * units :] + inner)
    return [u * h + (1.0 - u) * k]
