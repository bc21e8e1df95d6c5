"""An optimizer's step by gradients that Python code holds, in place of those in a model's store."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import Tensor, current_graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.columns import make_whole
from pydtconv.graph.memory.parameter_store import ParameterStore


def apply_gradients(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Variable] | None) -> None:
    """A step by one gradient for each variable; where code is recorded, a step of what is recorded.

    No gradients at all are no step.  Raises ValueError where numbers or shapes differ, and where all are None.
    """
    if not len(gradients):
        return
    given = optimizer._pydt_slots.variables if variables is None else list(variables)
    pairs = _pairs(optimizer, list(gradients), variables)
    found = [gradient for gradient, _ in pairs]
    variables = [variable for _, variable in pairs]
    graph = next((x.graph for x in found if isinstance(x, Tensor)), current_graph())
    if graph is not None and graph.records:
        with tracing.paused():
            _make_ready(optimizer, given)
        graph.apply(optimizer, found, variables)  # type: ignore[attr-defined]
        return
    make_whole(variables)
    stores = optimizer._pydt_slots.store, getattr(optimizer, "_pydt_own_store", None)
    store = next((one for one in stores if type(one) is ParameterStore and _is_of(one, variables)), None)
    if store is None:
        store = ParameterStore(variables)
        object.__setattr__(optimizer, "_pydt_own_store", store)
    for variable, gradient in zip(variables, found, strict=True):
        store.gradient_of(variable)[...] = np.asarray(gradient)
    _make_ready(optimizer, given, store)
    optimizer.step_of(store)
    for variable in variables:  # for tapes that have read them
        variable.version += 1


def _make_ready(optimizer: Any, variables: Sequence[Variable], store: ParameterStore | None = None) -> None:
    """Builds the optimizer for variables in the order in which they are given, as Keras does: files keep that order."""
    known = optimizer._pydt_slots.variables
    ids = set(map(id, known))
    new = [variable for variable in variables if id(variable) not in ids]
    if new or not optimizer.built:
        optimizer.ready([*known, *new], store)


def _is_of(store: ParameterStore, variables: Sequence[Variable]) -> bool:
    """Whether a store has just these variables, and they still lie in it."""
    same = {*map(id, store.variables)} == {*map(id, variables)}
    return same and all(variable.array.base is store.parameters for variable in store.variables)


def _pairs(optimizer: Any, gradients: list[Any], variables: Sequence[Variable] | None) -> list[tuple[Any, Variable]]:
    if variables is None:
        if not optimizer.built:
            raise ValueError("apply: expected trainable_variables, as the optimizer was not built with any")
        variables = optimizer._pydt_slots.variables
    variables = list(variables)
    if len(gradients) != len(variables):
        raise ValueError(f"apply: expected a gradient for each of {len(variables)} variables, got {len(gradients)}")
    pairs = [(g, v) for g, v in zip(gradients, variables, strict=True) if g is not None]
    missing = [v.path for g, v in zip(gradients, variables, strict=True) if g is None]
    if not pairs:
        raise ValueError("No gradients provided for any variable.")
    for gradient, variable in pairs:
        if tuple(np.shape(gradient) if not hasattr(gradient, "shape") else gradient.shape) != variable.shape:
            raise ValueError(
                f"apply: gradient of {variable.path!r}: expected shape {variable.shape}, got {tuple(gradient.shape)}"
            )
    if missing:
        told = f"Gradients do not exist for variables {missing} when minimizing the loss."
        warnings.warn(told, UserWarning, stacklevel=5)
    return pairs
