"""The dense layers whose columns processes share: chosen by name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.spatial.partition import COLUMNS, MODEL, Partition
from pydtconv.layers import Dense


def put_on(graph: Graph, model: Any, partition: Partition | None) -> None:
    """Says of a model's graph how the processes of a mesh share images and columns.

    Raises as `columns_of` does, and NotImplementedError for an optimizer that needs whole variables.
    """
    graph.partition = partition
    graph.cut_variables = () if partition is None else tuple(columns_of(model, partition, graph.training))
    optimizer = getattr(model, "optimizer", None)
    if graph.cut_variables and graph.training and optimizer is not None:
        optimizer.check_shards(graph.cut_variables, "columns")
        if optimizer.goes_by_variable:
            kind = type(optimizer).__name__
            told = "expected an optimizer that works element by element, got one of whole variables"
            raise NotImplementedError(f"{kind}: columns: {told}")


def columns_of(model: Any, partition: Partition, all_named: bool) -> list[Variable]:
    """The variables of which each process has some columns.  all_named: whether the model must have all that is named.

    Raises ValueError for a name that no dense layer has, and for numbers of units that cannot be shared evenly;
    NotImplementedError for constraints, which may read other columns.
    """
    layers = [layer for layer in model._pydt_flatten_layers() if layer is not model]
    found: dict[int, Variable] = {}
    if MODEL in partition.names and not partition.columns:
        raise ValueError("mesh: axis 'model': expected the names of dense layers in columns, got none")
    if partition.columns and partition.extent(COLUMNS) == 1:
        raise ValueError(f"columns: expected a mesh with processes that share samples, got {partition}")
    for name in partition.columns:
        named = [layer for layer in layers if fnmatchcase(layer.name, name)]
        chosen = [layer for layer in named if isinstance(layer, Dense)]
        if not chosen and all_named:
            other = f"{named[0].name!r}, a {type(named[0]).__name__}" if named else "no layer of this name"
            known = ", ".join(layer.name for layer in layers if isinstance(layer, Dense)) or "none"
            raise ValueError(f"columns: {name!r}: expected one of the model's Dense layers ({known}), got {other}")
        for layer in chosen:
            _check(layer, partition.extent(COLUMNS))
            found |= {id(variable): variable for variable in layer._pydt_own_variables()}
    return list(found.values())


def _check(layer: Dense, count: int) -> None:
    if layer.units % count:
        raise ValueError(
            f"columns: layer {layer.name!r}: expected units that {count} processes can share evenly, got {layer.units}"
        )
    for variable in layer._pydt_own_variables():
        if variable.constraint is not None:
            raise NotImplementedError(f"columns: variable {variable.path!r}: expected no constraint, got one")
