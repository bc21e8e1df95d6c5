"""Steps that use other storages than they were laid out for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydtconv.graph.memory.storage import View
from pydtconv.graph.schedule.steps import Step
from pydtconv.kernels.base import BackwardReductions, Prologue


def redirect(step: Step, storages: Mapping[object, object]) -> None:
    """Makes a step use other storages in the place of those that the mapping names."""
    for field in dataclasses.fields(step):
        value = getattr(step, field.name)
        other = _redirected(value, storages)
        if other is not value:
            setattr(step, field.name, other)


def _redirected(value: Any, storages: Mapping[object, object]) -> Any:
    """The same object where nothing in it changes."""
    if isinstance(value, View):
        other = storages.get(value.buffer)
        return value if other is None else dataclasses.replace(value, buffer=other)
    if isinstance(value, (tuple, list)):
        new = [_redirected(each, storages) for each in value]
        return value if all(a is b for a, b in zip(value, new, strict=True)) else type(value)(new)
    if isinstance(value, dict):
        return {key: _redirected(each, storages) for key, each in value.items()}
    if isinstance(value, (Prologue, BackwardReductions)):
        names = [field.name for field in dataclasses.fields(value)]
        changed = {name: _redirected(getattr(value, name), storages) for name in names}
        if any(changed[name] is not getattr(value, name) for name in names):
            return dataclasses.replace(value, **changed)
    return value
