"""Spectral normalization of a layer's kernel (Miyato et al., ICLR 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import initializers, ops
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import current_graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.wrappers import Wrapper
from pydtconv.serialization.configurable import builtin

#: below it, no vector is divided by its length, as in Keras
_LEAST = 1e-12


@builtin
class SpectralNormalization(Wrapper):
    """A layer whose kernel (or embeddings) is divided by its largest singular value before each step of training.

    power_iterations: of the estimate, which goes on from step to step.  The division itself has no gradient, and a
    layer that is called several times in a step is divided once.
    """

    def __init__(self, layer: Any, power_iterations: int = 1, **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        if not isinstance(power_iterations, (int, np.integer)) or power_iterations < 1:
            raise ValueError(
                "`power_iterations` should be greater than zero: SpectralNormalization: expected an integer of 1 or "
                f"more, got {power_iterations!r}"
            )
        self.power_iterations = int(power_iterations)

    def build(self, input_shape: Any) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        kernel = getattr(self.layer, "kernel", getattr(self.layer, "embeddings", None))
        if not isinstance(kernel, Variable):
            raise ValueError(f"{type(self.layer).__name__} object has no attribute 'kernel' nor 'embeddings'")
        self.kernel = kernel
        self.vector_u = self.add_weight(
            shape=(1, self.kernel.shape[-1]),
            initializer=initializers.TruncatedNormal(stddev=0.02),
            trainable=False,
            name="vector_u",
            dtype=self.kernel.dtype,
        )

    def before_step(self) -> None:
        """Divides the kernel, by the values as they are."""
        if self.built and self.kernel.value.any():
            u, kernel = self._normalized(self.vector_u.value, self.kernel.value)
            self.vector_u.assign(u)
            self.kernel.assign(kernel)

    def _normalized(self, u: Any, kernel: Any) -> tuple[Any, Any]:
        rows = ops.reshape(kernel, (-1, self.kernel.shape[-1]))
        v = u
        for _ in range(self.power_iterations):
            v = _unit(ops.matmul(u, ops.transpose(rows)))
            u = _unit(ops.matmul(v, rows))
        sigma = ops.matmul(ops.matmul(v, rows), ops.transpose(u))
        return u, ops.reshape(ops.divide(kernel, ops.reshape(sigma, ())), self.kernel.shape)

    def call(self, inputs: Any, training: bool = False) -> Any:
        graph = current_graph()
        if training and _is_run_here(graph):  # a model's step calls before_step, whatever runs it
            with tracing.paused():
                self.before_step()
        return self.layer(inputs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "power_iterations": self.power_iterations}


def _is_run_here(graph: Any) -> bool:
    """Whether what is being called runs at once, outside of a model's steps.  Raises where it is traced for later."""
    if graph is None or graph.runs_once:
        return True
    if not graph.records or graph.workspace.of_model:
        return False
    if graph.traced:
        raise NotImplementedError(
            "SpectralNormalization in a function that is traced: expected it in a model's step, or in code that runs "
            "as it is written"
        )
    return True


def _unit(x: Any) -> Any:
    return ops.divide(x, ops.sqrt(ops.maximum(ops.sum(ops.square(x)), _LEAST)))
