"""Whether a call of a model runs Python code of its user, which is to run in each call.

A model without such code is called on arrays by the step of `predict`, which is traced once.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from pydtconv import tree
from pydtconv.layers.base import attribute_values
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import Operation
from pydtconv.trainers import Trainer

#: members of classes that do not run in a call
_NOT_CALLED = (*attribute_values.OTHER, "__dict__", "__weakref__")


def runs_no_code_of_users(model: Any) -> bool:
    """Whether a call of a model runs the code of this package alone, which does the same each time."""
    return all(map(_is_ours, model._pydt_flatten_layers()))


def _is_ours(layer: Any) -> bool:
    """Whether a call of a layer runs the code of this package alone; operators that users write run in the plan.

    The numbers of a regularizer may change, which nobody notes.
    """
    network = getattr(layer, "_pydt_network", None)
    called = [layer, *(() if network is None else network.operations)]
    given = [(node.args, node.kwargs) for node in (network.nodes if network else ())]
    read = (vars(each) for each in called if not isinstance(each, Trainer))
    values = [*tree.flatten(given), vars(layer).get("call"), *(value for each in read for value in each.values())]
    functions = (value for value in values if callable(value) and not isinstance(value, Operation))
    return (
        layer.activity_regularizer is None
        and all(attribute_values.is_ours(each if isinstance(each, FunctionType) else type(each)) for each in functions)
        and not any(map(_has_own_code, {kind for each in called for kind in type(each).__mro__}))
    )


def _has_own_code(kind: type) -> bool:
    """Whether a class of a user has what may run in a call."""
    if attribute_values.is_ours(kind) or kind.__module__ in sys.stdlib_module_names:
        return False
    return any(
        not (name in _NOT_CALLED or (hasattr(Trainer, name) and not hasattr(Layer, name)))
        and (callable(member) or hasattr(member, "__get__"))
        for name, member in vars(kind).items()
    )
