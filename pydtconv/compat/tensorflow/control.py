"""Loops, choices and lists of tensors of tensorflow: they run as Python writes them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv.compat.tensorflow.arrays import array, name_of


class TensorArray:
    """A list of tensors of one shape.  Its methods that write give the list itself, as scripts assign it."""

    def __init__(
        self, dtype: Any, size: Any = 0, dynamic_size: bool = False, clear_after_read: Any = None, **kwargs: Any
    ) -> None:
        self.dtype = dtype
        self.dynamic_size = dynamic_size
        self._parts: list[Any] = [None] * int(size)

    def size(self, name: str | None = None) -> int:
        """How many there are."""
        return len(self._parts)

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts a tensor at a place."""
        place = int(index)
        if place >= len(self._parts):
            if not self.dynamic_size:
                raise ValueError(f"TensorArray.write: index: expected less than {len(self._parts)}, got {place}")
            self._parts += [None] * (place + 1 - len(self._parts))
        self._parts[place] = array(value, name_of(self.dtype))
        return self

    def read(self, index: Any, name: str | None = None) -> Any:
        """The tensor at a place."""
        found = self._parts[int(index)]
        if found is None:
            raise ValueError(f"TensorArray.read: index: expected one that was written, got {int(index)}")
        return found

    def stack(self, name: str | None = None) -> Any:
        """All of them along a new first axis; zeros where none was written."""
        return self.gather(range(len(self._parts)))

    def gather(self, indices: Any, name: str | None = None) -> Any:
        """Those at places, along a new first axis."""
        known = next((each for each in self._parts if each is not None), None)
        if known is None:
            raise ValueError("TensorArray: expected a tensor that was written, got none")
        chosen = [self._parts[int(i)] for i in np.asarray(indices)]
        return array(ops.stack([ops.zeros_like(known) if each is None else each for each in chosen]))

    def concat(self, name: str | None = None) -> Any:
        """All of them one behind the other."""
        return array(ops.concatenate([self.read(i) for i in range(len(self._parts))], axis=0))

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Takes the parts of a tensor along its first axis."""
        return self.scatter(range(value.shape[0]), value)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts the parts of a tensor at places."""
        for i, place in enumerate(np.asarray(indices)):
            self.write(place, value[i])
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Takes parts of a tensor of these lengths."""
        ends = np.cumsum(np.asarray(lengths))
        for i, (end, length) in enumerate(zip(ends, np.asarray(lengths), strict=True)):
            self.write(i, value[int(end - length) : int(end)])
        return self

    def identity(self) -> TensorArray:
        return self

    def close(self, name: str | None = None) -> None:
        """Nothing: memory goes with the list."""


def _elements(elems: Any, reverse: bool = False) -> list[Any]:
    """The structures of the parts along the first axis."""
    count = tree.flatten(elems)[0].shape[0]
    order = range(count - 1, -1, -1) if reverse else range(count)
    return [tree.map_structure(lambda x, i=i: x[i], elems) for i in order]


def _states(fn: Callable[..., Any], elems: Any, initializer: Any, reverse: bool) -> list[Any]:
    """What fn(state, part) makes of each part and the state before it; without an initializer the first part is one."""
    arrays = tree.map_structure(array, elems)
    parts = _elements(arrays, reverse)
    states = [] if initializer is not None else [parts.pop(0)]
    state = states[0] if states else tree.map_structure(array, initializer)
    for part in parts:
        state = fn(state, part)
        states.append(state)
    return states


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All states of a loop along the first axis, stacked: fn(state, part) -> state."""
    states = _states(fn, elems, initializer, reverse)
    states = states[::-1] if reverse else states
    return tree.map_structure(lambda *each: array(ops.stack(list(each))), *states)


def foldl(fn: Callable[..., Any], elems: Any, initializer: Any = None, **kwargs: Any) -> Any:
    """The last state of a loop along the first axis: fn(state, part) -> state."""
    return _states(fn, elems, initializer, False)[-1]


def foldr(fn: Callable[..., Any], elems: Any, initializer: Any = None, **kwargs: Any) -> Any:
    """The same from the last part to the first."""
    return _states(fn, elems, initializer, True)[-1]


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """What the function of the first condition that holds gives, else that of the default."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs:
        raise ValueError("tf.case: pred_fn_pairs: expected a condition with its function, got none")
    (condition, function), *others = pairs
    if not others and default is None:
        return function()  # the last one is taken without a look at its condition, as TensorFlow takes it
    rest = (lambda: case(others, default)) if others else default
    return ops.cond(condition, function, rest)


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """What the function of a number gives, else that of the default, which is by default the last one."""
    functions = dict(branch_fns if not callable(branch_fns[0]) else enumerate(branch_fns))
    last = default or functions[max(functions)]
    return case([(ops.equal(branch_index, i), function) for i, function in functions.items()], last)


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: int | None = None, batch_axis: int = 0, name: str | None = None
) -> Any:
    """Each sample with its first elements, as many as its length, in the other order."""
    x = array(input)
    axis = 1 if seq_axis is None else int(seq_axis)
    steps = np.arange(x.shape[axis], dtype="int32")
    lengths = ops.expand_dims(ops.cast(array(seq_lengths), "int32"), 1)
    places = ops.where(steps < lengths, lengths - 1 - steps, steps)
    shape = [1] * len(x.shape)
    shape[batch_axis], shape[axis] = x.shape[batch_axis], x.shape[axis]
    places = ops.reshape(places if batch_axis < axis else ops.transpose(places), tuple(shape))
    return array(ops.take_along_axis(x, ops.broadcast_to(places, tuple(x.shape)), axis=axis))


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Any]:
    return list(input)


def _unchanged(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function


def _context(*args: Any, **kwargs: Any) -> Any:
    return contextlib.nullcontext()


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What means nothing here."""


def table() -> dict[str, Any]:
    """The names by name: code runs as Python writes it, so that order needs no word."""
    own = TensorArray, scan, foldl, foldr, case, switch_case, reverse_sequence, identity_n
    return {
        **{each.__name__: each for each in own},
        **dict.fromkeys(("control_dependencies", "init_scope", "variable_creator_scope"), _context),
        **dict.fromkeys(("group", "no_op"), _nothing),
        **dict.fromkeys(("recompute_grad", "guarantee_const", "grad_pass_through"), _unchanged),
        "tuple": lambda tensors, control_inputs=None, name=None: list(tensors),
        "timestamp": lambda name=None: time.time(),
    }
