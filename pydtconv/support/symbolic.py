"""Where symbolic tensors come from."""

from __future__ import annotations

from typing import Any


def is_keras_tensor(x: Any) -> bool:
    """Whether x is a symbolic tensor, such as `Input` gives."""
    return hasattr(x, "_keras_history")


def get_source_inputs(tensor: Any) -> list[Any]:
    """The inputs that a symbolic tensor is computed from, each once, in the order of the calls.

    Raises ValueError for anything else than a symbolic tensor.
    """
    if not is_keras_tensor(tensor):
        raise ValueError(f"get_source_inputs: expected a symbolic tensor, got {tensor!r}")
    found: dict[int, Any] = {}
    seen, stack = set(), [tensor]
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if x._keras_history is None or x.node.is_input:
            found[id(x)] = x
        else:
            stack.extend(reversed(x.node.input_tensors))
    return list(found.values())
