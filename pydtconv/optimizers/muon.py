"""Muon (Jordan et al., 2024; Liu et al., arXiv 2502.16982), as Keras has it: matrices step by orthogonal directions.

Of a matrix:  m = momentum m + g;  G = g + momentum m (nesterov) or m;  G / |G| goes through `ns_steps` times
    A = X X';  X = a X + (b A + c A A) X
and w = w - lr rms_rate sqrt(max(rows, columns)) X.  All other variables step by AdamW, the rate times `adam_lr_ratio`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir.variable import Variable
from pydtconv.optimizers.arguments import check_numbers
from pydtconv.optimizers.optimizer import Optimizer


class Muon(Optimizer):
    """Momentum, made orthogonal by Newton and Schulz's iteration; see Keras for which variables it is meant for."""

    own_arguments = (
        "adam_beta_1", "adam_beta_2", "epsilon", "exclude_layers", "muon_a", "muon_b", "muon_c", "adam_lr_ratio",
        "momentum", "ns_steps", "nesterov", "exclude_embeddings", "adam_weight_decay", "rms_rate",
    )  # fmt: skip

    def __init__(
        self,
        learning_rate: Any = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        exclude_layers: Sequence[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **kwargs: Any,
    ) -> None:
        check_numbers("Muon", epsilon=epsilon, muon_a=muon_a, muon_b=muon_b, muon_c=muon_c, momentum=momentum)
        check_numbers("Muon", adam_lr_ratio=adam_lr_ratio)
        for told, value in ("adam_beta_1", adam_beta_1), ("adam_beta_2", adam_beta_2):
            if not 0 <= value <= 1:
                raise ValueError(f"Muon: expected {told} between 0 and 1, got {value!r}")
        if not isinstance(ns_steps, (int, np.integer)) or ns_steps < 0:
            raise ValueError(f"Muon: ns_steps: expected an integer of 0 or more, got {ns_steps!r}")
        if isinstance(exclude_layers, str):
            raise ValueError(f"Muon: exclude_layers: expected a list of words, got {exclude_layers!r}")
        super().__init__(
            learning_rate,
            weight_decay=weight_decay,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            use_ema=use_ema,
            ema_momentum=ema_momentum,
            ema_overwrite_frequency=ema_overwrite_frequency,
            loss_scale_factor=loss_scale_factor,
            gradient_accumulation_steps=gradient_accumulation_steps,
            name=name,
            **kwargs,
        )
        self.adam_beta_1, self.adam_beta_2, self.adam_lr_ratio = adam_beta_1, adam_beta_2, adam_lr_ratio
        self.adam_weight_decay = adam_weight_decay
        self.epsilon = epsilon
        self.muon_a, self.muon_b, self.muon_c = muon_a, muon_b, muon_c
        self.momentum, self.nesterov, self.ns_steps = momentum, bool(nesterov), int(ns_steps)
        self.exclude_embeddings, self.exclude_layers = bool(exclude_embeddings), list(exclude_layers or ())
        self.rms_rate = rms_rate

    def _should_use_adamw(self, variable: Variable) -> bool:
        embedding = self.exclude_embeddings and "embedding" in variable.path.lower()
        excluded = any(re.search(word, variable.path) for word in self.exclude_layers)
        return len(variable.shape) != 2 or embedding or excluded

    def build(self, variables: Sequence[Variable], store: Any = None) -> None:
        """Makes the state of these variables, once."""
        if self.built:
            return
        super().build(variables)
        self.momentums: list[Variable] = []
        self.adam_velocities: list[Variable | None] = []
        for variable in variables:
            self.momentums.append(self.add_variable_from_reference(variable, "momentum"))
            of_adam = self._should_use_adamw(variable)
            self.adam_velocities.append(self.add_variable_from_reference(variable, "velocity") if of_adam else None)

    def update_step(self, gradient: np.ndarray, variable: Variable, learning_rate: float) -> None:
        """One variable's update, in place."""
        index = self._get_variable_index(variable)
        m, velocity, w = self.momentums[index].array, self.adam_velocities[index], variable.array
        if velocity is not None:
            self._adam_step(gradient, w, m, velocity.array, learning_rate * self.adam_lr_ratio)
            return
        m += gradient + m * (self.momentum - 1)
        update = self._orthogonal(gradient + self.momentum * m if self.nesterov else m)
        scale = 1.0 if self.rms_rate is None else math.sqrt(max(w.shape)) * self.rms_rate
        w -= learning_rate * scale * update

    def _adam_step(self, gradient: np.ndarray, w: np.ndarray, m: np.ndarray, v: np.ndarray, rate: float) -> None:
        step = int(self.iterations) + 1
        alpha = rate * math.sqrt(1 - self.adam_beta_2**step) / (1 - self.adam_beta_1**step)
        m += (gradient - m) * (1 - self.adam_beta_1)
        v += (np.square(gradient) - v) * (1 - self.adam_beta_2)
        w -= m * alpha / (np.sqrt(v) + self.epsilon)

    def _orthogonal(self, x: np.ndarray) -> np.ndarray:
        """Near U V' of the singular value decomposition x = U S V'."""
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / (np.linalg.norm(x) + 1e-7)
        for _ in range(self.ns_steps):
            products = x @ x.T
            x = self.muon_a * x + (self.muon_b * products + self.muon_c * products @ products) @ x
        return x.T if tall else x

    def _apply_weight_decay(self, variables: Sequence[Variable]) -> None:
        for variable in variables:
            decay = self.adam_weight_decay if self._should_use_adamw(variable) else self.weight_decay
            if decay and self._use_weight_decay(variable):
                self._pydt_decay(variable, decay)
