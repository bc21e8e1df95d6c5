"""`jvp`: a Jacobian times a vector, by gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import hooks, tree
from pydtconv.dtypes import FLOATING, name_of
from pydtconv.ops.functions.arithmetic import add, multiply
from pydtconv.ops.functions.operands import as_operand, is_symbolic
from pydtconv.ops.functions.reduction import sum as sum_over
from pydtconv.ops.parts import exported

__all__ = exported(linalg="jvp")


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """(y, dy): y = fun(*primals), and how y changes with the primals along the tangents, in y's structure.

    primals, tangents: tuples or lists of floats, arrays or structures of them, of the same shapes.  has_aux: fun
    returns (y, aux), and jvp (y, dy, aux).  Raises ValueError where tangents do not fit.

    The product is the gradient of a gradient, which is linear in what y is weighed with; where an operator's
    gradient cannot be differentiated again, there is one pass backward for each element of y.
    """
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise ValueError(f"jvp: expected tuples or lists of primals and tangents, got {primals!r} and {tangents!r}")
    xs = tree.map_structure(_copied, list(primals))
    along = [as_operand(t) for t in tree.flatten(list(tangents))]
    shapes = [tuple(x.shape) for x in tree.flatten(xs)], [tuple(t.shape) for t in along]
    if shapes[0] != shapes[1]:
        raise ValueError(f"jvp: expected tangents of the primals' shapes {shapes[0]}, got {shapes[1]}")
    try:
        y, dy = _twice(fun, xs, along, has_aux)
    except NotImplementedError:
        y, dy = _by_elements(fun, xs, along, has_aux)
    result, aux = y if has_aux else (y, None)
    changes = tree.pack_sequence_as(result, dy)
    return (result, changes, aux) if has_aux else (result, changes)


def _copied(x: Any) -> Any:
    """x as what a tape can watch; an array of its own, since a tape knows arrays by who they are."""
    return x if is_symbolic(x) else np.array(as_operand(x))


def _recorded(xs: Any) -> Any:
    """xs, which are watched, as results: their own operators (`x * x`) are recorded, those of arrays are not."""
    return tree.map_structure(lambda x: multiply(x, 1.0), xs)


def _is_float(y: Any) -> bool:
    return hasattr(y, "dtype") and name_of(y.dtype) in FLOATING


def _weighed(gradients: Any, along: list[Any]) -> Any:
    """The sum of all products of gradients and tangents; None where there is no gradient."""
    total = None
    for gradient, t in zip(gradients, along, strict=True):
        if gradient is not None:
            part = sum_over(multiply(gradient, t))
            total = part if total is None else add(total, part)
    return total


def _results(y: Any, has_aux: bool) -> list[Any]:
    if has_aux and not (isinstance(y, (tuple, list)) and len(y) == 2):
        raise ValueError(f"jvp: expected fun to return (y, aux) where has_aux=True, got {y!r}")
    return tree.flatten(y[0] if has_aux else y)


def _twice(fun: Callable[..., Any], xs: Any, along: list[Any], has_aux: bool) -> Any:
    """By the derivative of sum(gradient(u y, x) t) by u."""
    with hooks.tape(persistent=True, watch_accessed_variables=False) as outer:
        with hooks.tape(persistent=True, watch_accessed_variables=False) as inner:
            inner.watch(xs)
            y = fun(*_recorded(xs))
        leaves = _results(y, has_aux)
        weights = [np.zeros(leaf.shape, "float32") for leaf in leaves]
        outer.watch(weights)
        products = [
            _weighed(inner.gradient([leaf], tree.flatten(xs), [u]), along) if _is_float(leaf) else None
            for leaf, u in zip(leaves, weights, strict=True)
        ]
    dy = [None if product is None else outer.gradient(product, u) for product, u in zip(products, weights, strict=True)]
    return y, [u if change is None else change for change, u in zip(dy, weights, strict=True)]


def _by_elements(fun: Callable[..., Any], xs: Any, along: list[Any], has_aux: bool) -> Any:
    with hooks.tape(persistent=True, watch_accessed_variables=False) as recorded:
        recorded.watch(xs)
        y = fun(*_recorded(xs))
    dy = []
    for leaf in _results(y, has_aux):
        change: Any = np.zeros(leaf.shape, "float32")
        rows = recorded.jacobian(leaf, tree.flatten(xs)) if _is_float(leaf) else []
        for row, t in zip(rows, along, strict=False):
            if row is not None:
                axes = tuple(range(len(leaf.shape), len(row.shape)))
                change = add(change, sum_over(multiply(row, t), axis=axes) if axes else multiply(row, t))
        dy.append(change)
    return y, dy
