"""Loops and branches.

While a graph is traced, `scan` and `fori_loop` leave one operator there, `Scan`, where a step only computes; else, as
other loops, the operators of their steps, one behind the other.  What depends on the values of symbolic tensors is not
known then: `cond` computes both branches and chooses, and `while_loop` expects
a number of steps that suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import hooks, tree
from pydtconv.hooks import as_result
from pydtconv.ops.base import functions
from pydtconv.ops.branches import traced
from pydtconv.ops.functions.operands import is_symbolic
from pydtconv.ops.functions.shape import concatenate, get_item, stack
from pydtconv.ops.functions.tables.composed_shapes import where
from pydtconv.ops.parts import exported

__all__ = exported(numpy="vectorize", core="associative_scan cond fori_loop map scan switch vectorized_map while_loop")


def _extent(xs: Any, name: str) -> int:
    leaves = tree.flatten(xs)
    extent = leaves[0].shape[0] if leaves else None
    if extent is None:
        raise ValueError(f"{name}: expected tensors whose first extent is known, got {xs!r}")
    return extent


def _item(xs: Any, i: int) -> Any:
    return tree.map_structure(lambda x: get_item(x, i) if is_symbolic(x) else np.asarray(x)[i], xs)


def _stacked(items: Sequence[Any]) -> Any:
    return tree.map_structure(lambda *leaves: _stack(leaves), *items)


def _stack(leaves: Sequence[Any]) -> Any:
    if any(is_symbolic(leaf) for leaf in leaves):
        return stack(leaves, 0)
    return as_result(np.stack([np.asarray(x) for x in leaves]))


def _is_open(value: Any) -> bool:
    """Whether there is no value yet: what is recorded has one where code runs as it is written."""
    return is_symbolic(value) and getattr(getattr(value, "graph", None), "traced", True)


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """true_fn() where pred is true, else false_fn(); both, and a choice, where pred has no value yet."""
    if not _is_open(pred):
        return true_fn() if np.asarray(pred).any() else false_fn()
    return tree.map_structure(lambda a, b: where(pred, a, b), traced(true_fn), traced(false_fn))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands), the index limited to those that there are."""
    if _is_open(index):
        results = [traced(branch, *operands) for branch in branches]
        chosen = results[-1]
        for i, result in reversed(list(enumerate(results[:-1]))):
            chosen = tree.map_structure(lambda a, b, i=i: where(index <= i, a, b), result, chosen)
        return chosen
    return branches[int(np.clip(int(np.asarray(index)), 0, len(branches) - 1))](*operands)


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: Any = None
) -> Any:
    """body on loop_vars as long as cond is true for them, at most maximum_iterations times.

    Where cond is not known yet, and maximum_iterations is, so many steps run, and the variables change as long as cond
    is true.
    """
    many = isinstance(loop_vars, (list, tuple))
    values = tuple(loop_vars) if many else (loop_vars,)
    done = 0
    while maximum_iterations is None or done < maximum_iterations:
        test = cond(*values)
        if _is_open(test) and not hasattr(test, "value"):
            if maximum_iterations is None:
                raise NotImplementedError(
                    "ops.while_loop: its condition depends on symbolic tensors: expected maximum_iterations, or "
                    "ops.fori_loop"
                )
            values = _while_true(cond, body, values, test, int(maximum_iterations) - done)
            break
        if not np.asarray(test).all():
            break
        result = body(*values)
        values = tuple(result) if isinstance(result, (list, tuple)) else (result,)
        done += 1
    return values if many else values[0]


def _while_true(cond: Callable[..., Any], body: Callable[..., Any], values: Any, test: Any, steps: int) -> Any:
    def step(_: Any, state: Any) -> Any:
        on, before = state
        new = traced(body, *before)
        new = tuple(new) if isinstance(new, (list, tuple)) else (new,)
        after = tree.map_structure(lambda a, b: where(on, a, b), new, before)
        return functions.logical_and(on, cond(*after)), after

    return fori_loop(0, steps, step, (test, values))[1]


def fori_loop(lower: int, upper: int, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    """val = body_fun(i, val) for i from lower to upper - 1."""

    def step(state: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], None]:
        return (state[0] + 1, body_fun(*state)), None

    start = np.int32(lower)
    found = hooks.traced_loop(step, (start, init_val), None, int(upper) - int(lower))
    if found is not None:
        return found[0][1]
    value = init_val
    for i in range(int(lower), int(upper)):
        value = body_fun(i, value)
    return value


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """f of each element along axis 0, stacked."""
    return _stacked([f(_item(xs, i)) for i in range(_extent(xs, "map"))])


def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """function of each element along axis 0, stacked."""
    return map(function, elements)


def vectorize(pyfunc: Callable[..., Any], *, excluded: Any = None, signature: str | None = None) -> Callable[..., Any]:
    """pyfunc for arrays, element by element."""
    return np.vectorize(pyfunc, excluded=excluded, signature=signature)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: Any = 1,
) -> tuple[Any, Any]:
    """carry, y = f(carry, x) for each x along axis 0: the last carry and all y, stacked."""
    if xs is None and length is None:
        raise ValueError("scan: expected xs or length, got neither")
    count = _extent(xs, "scan") if xs is not None else int(length)  # type: ignore[arg-type]
    if length is not None and length != count:
        raise ValueError(f"scan: length: expected {count} as xs has, got {length}")
    if unroll is not True and int(unroll) < count:
        found = hooks.traced_loop(f, init, xs, count, backwards=reverse)
        if found is not None:
            return found
    carry, results = init, []
    for i in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, None if xs is None else _item(xs, i))
        results.append(y)
    results = results[::-1] if reverse else results
    return carry, None if results and results[0] is None else _stacked(results)


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All of f(x0, f(x1, ...)) up to each element along an axis, for an f that may be grouped in any way.

    f is called on many elements at a time, about twice the logarithm of their number (G. Blelloch, 1990).
    """
    extent = tree.flatten(elems)[0].shape[axis]
    order = slice(None, None, -1 if reverse else 1)
    found = _scanned(f, tree.map_structure(lambda x: _part(x, order, axis), elems), extent, axis)
    return tree.map_structure(lambda x: _part(x, order, axis), found)


def _part(x: Any, part: Any, axis: int) -> Any:
    key = tuple(part if d == axis % len(x.shape) else slice(None) for d in range(len(x.shape)))
    return get_item(x, key) if is_symbolic(x) else np.asarray(x)[key]


def _scanned(f: Callable[[Any, Any], Any], elems: Any, extent: int, axis: int) -> Any:
    """The same forwards: of pairs first, which are every second result."""

    def parts(xs: Any, *bounds: int | None) -> Any:
        return tree.map_structure(lambda x: _part(x, slice(*bounds), axis), xs)

    if extent < 2:
        return elems
    odd = _scanned(f, f(parts(elems, 0, extent - 1, 2), parts(elems, 1, extent, 2)), extent // 2, axis)
    if extent == 2:
        return tree.map_structure(lambda *leaves: _joined(leaves, axis), parts(elems, 0, 1), odd)
    even = f(parts(odd, 0, (extent - 1) // 2), parts(elems, 2, extent, 2))
    order = np.argsort([0, *range(1, extent, 2), *range(2, extent, 2)]).tolist()
    return tree.map_structure(lambda *leaves: _part(_joined(leaves, axis), order, axis), parts(elems, 0, 1), odd, even)


def _joined(leaves: Sequence[Any], axis: int) -> Any:
    if any(is_symbolic(leaf) for leaf in leaves):
        return concatenate(leaves, axis)
    return as_result(np.concatenate(leaves, axis))
