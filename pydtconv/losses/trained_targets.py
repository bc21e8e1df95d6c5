"""Losses whose targets are trained, too, such as the distance of two embeddings or what a teacher that learns says.

The operators of losses take targets as given and have no gradient by them; here the same values are written in
operators that have.  `trains` tells where that is needed: other losses stay one operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph.ir import tracing


def trains(y_true: Any) -> bool:
    """Whether targets follow from a trainable variable, or from an array that a `GradientTape` watches."""
    recording: Any = tracing.current()
    if not getattr(recording, "records", False):
        recording = None
    elif id(y_true) in recording.watched:
        return True
    rest, seen = [y_true], set()
    while rest:
        tensor = rest.pop()
        if id(tensor) in seen or not hasattr(tensor, "apply_op"):
            continue
        seen.add(id(tensor))
        variable = tensor if hasattr(tensor, "trainable") else getattr(tensor, "variable", None)
        if variable is not None:
            if variable.trainable:
                return True
            continue
        node = getattr(tensor, "node", None)
        if node is None:
            if recording is not None and recording.watches(tensor):
                return True
            continue
        if not hasattr(node, "op"):  # a symbolic tensor, of which a layer with weights may come
            if not node.is_input:
                return True
            continue
        excluded = (*node.op.updates, *node.op.nondifferentiable)
        rest.extend(x for i, x in enumerate(node.inputs) if i not in excluded)
    return False


def _tensors(*operands: Any) -> Any:
    """Operands that a recording sees, where they are arrays."""
    recording: Any = tracing.current()
    return [
        recording.fed(x) if isinstance(x, np.ndarray) and getattr(recording, "records", False) else x for x in operands
    ]


def values(op: ops.ElementwiseLoss | ops.CrossEntropy, t: Any, p: Any) -> Any:
    """The values of the operator, in those that it is made of."""
    t, p = _tensors(t, p)
    return op.formula(p, t)
