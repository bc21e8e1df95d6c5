"""Adafactor (Shazeer and Stern, ICML 2018), as Keras has it: second moments by rows and columns.

For variables of two axes and more, of the last two of which r are the rows, c the columns, with s = g^2 + epsilon_1:
    r = b r + (1 - b) mean(s, -1);  c = b c + (1 - b) mean(s, -2);  v = r / mean(r) * c,   b = 1 - t^beta_2_decay
Others: v = b v + (1 - b) s.  Then, with rho = min(lr, 1 / sqrt(t)):
    u = g / sqrt(v);  w = w - max(epsilon_2, rms(w)) rho u / max(1, rms(u) / clip_threshold)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.optimizers.arguments import Shared, check_numbers
from pydtconv.optimizers.optimizer import Optimizer


class Adafactor(Optimizer):
    """Adam's scaling, by less memory than a second moment for each weight would take to be exact."""

    own_arguments = ("beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold", "relative_step")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **shared: Unpack[Shared],
    ) -> None:
        check_numbers(
            "Adafactor",
            beta_2_decay=beta_2_decay,
            epsilon_1=epsilon_1,
            epsilon_2=epsilon_2,
            clip_threshold=clip_threshold,
        )
        if clip_threshold <= 0:
            raise ValueError(f"Adafactor: clip_threshold: expected a number above 0, got {clip_threshold!r}")
        super().__init__(learning_rate, **shared)
        self.beta_2_decay = beta_2_decay
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold
        self.relative_step = bool(relative_step)

    def build(self, variables: Sequence[Variable], store: Any = None) -> None:
        """Makes the state of these variables, once."""
        if self.built:
            return
        super().build(variables)
        self._r: list[Variable] = []
        self._c: list[Variable] = []
        self._v: list[Variable] = []
        for variable in variables:
            shape, factored = variable.shape, len(variable.shape) >= 2
            dtype = variable.dtype if factored else "int32"  # Keras keeps a 0 where it has nothing to keep
            self._r.append(self._pydt_add_for(variable, shape[:-1] if factored else (), "zeros", dtype, name="r"))
            columns = (*shape[:-2], *shape[-1:]) if factored else ()
            self._c.append(self._pydt_add_for(variable, columns, "zeros", dtype, name="c"))
            self._v.append(self.add_variable_from_reference(variable, "velocity"))

    def update_step(self, gradient: np.ndarray, variable: Variable, learning_rate: float) -> None:
        """One variable's update, in place."""
        index, step = self._get_variable_index(variable), int(self.iterations) + 1
        r, c, v = self._r[index], self._c[index], self._v[index].array
        rho = min(learning_rate, 1 / math.sqrt(step))
        beta = 1 - step**self.beta_2_decay
        squares = np.square(gradient) + gradient.dtype.type(self.epsilon_1)
        if len(variable.shape) >= 2:
            r.assign(beta * r.array + (1 - beta) * squares.mean(-1))
            c.assign(beta * c.array + (1 - beta) * squares.mean(-2))
            rows = r.array / r.array.mean(-1, keepdims=True)
            np.multiply(rows[..., None], c.array[..., None, :], out=v)
            np.maximum(v, np.finfo(v.dtype).tiny, out=v)  # the product of a row and a column without gradients is 0
        else:
            v[...] = beta * v + (1 - beta) * squares
        update = gradient / np.sqrt(v)
        update /= max(1.0, _rms(update) / self.clip_threshold)
        variable.array[...] -= max(self.epsilon_2, _rms(variable.array)) * rho * update


def _rms(x: np.ndarray) -> float:
    return math.sqrt(np.square(x).mean(dtype=np.float64)) if x.size else 0.0
