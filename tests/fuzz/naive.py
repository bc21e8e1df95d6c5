"""A traced graph run node by node in float64: an array for every tensor, no passes, no plan; gradients always added."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pydtconv.graph import Graph, Tensor
from pydtconv.graph.ir.graph import Node, joins_channels
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.kernels import Pass, find
from pydtconv.kernels.base import scratch
from pydtconv.ops.base import Spec, outputs_of, spec_of


def wide(array: np.ndarray) -> np.ndarray:
    """A copy, of floating-point numbers in float64."""
    return np.array(array, "float64" if np.asarray(array).dtype.kind == "f" else None, order="C")


class Naive:
    """values: of all tensors after the run, state that forward has changed among them.  gradients: of those needed.

    nudged: an array a little moved, for each result of an operator and each gradient on the way.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: dict[str, np.ndarray],
        parameters: list[np.ndarray],
        nudged: Callable[[np.ndarray], np.ndarray] = lambda array: array,
    ) -> None:
        self.graph, self._nudged = graph, nudged
        self.values: dict[Tensor, np.ndarray] = {graph.inputs[name]: wide(array) for name, array in inputs.items()}
        self.values.update(zip(graph.parameters, map(wide, parameters), strict=True))
        self.gradients: dict[Tensor, np.ndarray] = {}
        self._saved: dict[Node, dict[str, np.ndarray]] = {}
        for node in graph.nodes:
            self._forward(node)
        if graph.loss is not None:
            self._backward(graph.loss)

    def _inputs(self, node: Node) -> list[np.ndarray]:
        for tensor in node.inputs:
            if tensor.constant is not None:
                self.values[tensor] = wide(tensor.constant)
        return [self.values[tensor] for tensor in node.inputs]

    def _forward(self, node: Node) -> None:
        op, x = node.op, self._inputs(node)
        specs = [spec_of(array) for array in x]
        y = [_empty(spec) for spec in outputs_of(op, *specs)]
        if op.is_view:
            y = [x[0].reshape(y[0].shape).copy()]
        else:
            kernel = find(op, "cpu", op.kernel_dtype(*specs))
            training = self.graph.training
            saved = {key: _empty(spec) for key, spec in op.saves(*specs, training=training).items()}
            self._saved[node] = saved
            workspace = scratch(kernel.workspace("forward", *specs))
            kernel.forward(Pass(x=x, y=y, saved=saved, workspace=workspace, training=training))()
            y = [self._nudged(array) for array in y]
        self.values.update(zip(node.outputs, y, strict=True))

    def _backward(self, loss: Tensor) -> None:
        required = RequiredGradients(self.graph)
        self.gradients[loss] = np.ones(())
        for node in reversed(required.nodes):
            dy = [self.gradients.get(tensor) for tensor in node.outputs]
            if any(array is not None for array in dy):
                for i, dx in self._gradients_of(node, dy, required).items():
                    tensor = node.inputs[i]
                    self.gradients[tensor] = self.gradients.get(tensor, 0.0) + self._nudged(dx)

    def _gradients_of(
        self, node: Node, given: list[np.ndarray | None], required: RequiredGradients
    ) -> dict[int, np.ndarray]:
        op, x = node.op, self._inputs(node)
        needs = required.of_inputs(node)
        wanted = [i for i, need in enumerate(needs) if need]
        dy = [None if array is None else array.copy() for array in given]
        if op.is_view:
            assert dy[0] is not None
            return {0: dy[0].reshape(x[0].shape)}
        if joins_channels(node):
            ends = np.cumsum([array.shape[-1] for array in x])[:-1]
            parts = np.split(dy[0], ends, axis=-1)
            return {i: parts[i] for i in wanted}
        specs = [spec_of(array) for array in x]
        passed = [i for i in wanted if required.passes_dy(node, i)]
        dx = [np.full_like(array, np.nan) if needs[i] and i not in passed else None for i, array in enumerate(x)]
        if any(array is not None for array in dx) or op.overwrites_dy:
            retained = op.retains(needs)
            y = [self.values[tensor] for tensor in node.outputs]
            kernel = find(op, "cpu", op.kernel_dtype(*specs))
            kernel.backward(
                Pass(
                    x=[array.copy() if i in retained.x else None for i, array in enumerate(x)],
                    y=[array.copy() if i in retained.y else None for i, array in enumerate(y)],
                    dy=dy,
                    dx=dx,
                    accumulate=(False,) * len(x),
                    saved=self._saved[node],
                    workspace=scratch(kernel.workspace("backward", *specs)),
                    training=self.graph.training,
                )
            )()
        found = {i: dy[0] if i in passed else dx[i] for i in wanted}
        return {i: array.copy() for i, array in found.items() if array is not None}


def _empty(spec: Spec) -> np.ndarray:
    return np.full(spec.shape, np.nan if spec.dtype.startswith("float") else 0, spec.dtype)  # type: ignore[arg-type]
