"""What gradients lack that convolutions have written past a batch normalization (passes/bypassed_normalization.py).

Terms are noted for channels of a gradient when backward of a normalization has found their coefficients, added to where
there are some, and subtracted, some channels at a time, before a step reads the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydtconv import dtypes
from pydtconv.graph.ir.graph import Node
from pydtconv.graph.memory.storage import View, dense_strides, fresh
from pydtconv.graph.schedule.steps import MeanTermsStep, Steps
from pydtconv.kernels.base import MeanTerms
from pydtconv.ops.base import Spec
from pydtconv.ops.moments import moments_spec
from pydtconv.ops.normalization import BatchNorm

Channels = tuple[int, int]


@dataclass(eq=False)
class _Noted:
    """Terms of a gradient.  node: a normalization that they come from; left: channels not yet subtracted."""

    node: Node
    gradient: View
    x: View
    mean: View
    coefficients: View
    left: list[Channels] = field(default_factory=list)

    def channels_of(self, view: View) -> Channels | None:
        """Those of the gradient that a view of the same pixels has; None where it has others."""
        mine, other = self.gradient, view
        steps = mine.strides or dense_strides(mine.spec)
        if steps != (other.strides or dense_strides(other.spec)) or mine.spec.shape[:-1] != other.spec.shape[:-1]:
            return None
        first, rest = divmod(other.offset - mine.offset, dtypes.itemsize(mine.spec.dtype))
        stop = first + (other.spec.shape[-1] or 0)
        return None if rest or first < 0 or stop > (mine.spec.shape[-1] or 0) else (first, stop)

    def part(self, channels: Channels) -> MeanTermsStep:
        """The step that subtracts the terms of these channels."""
        cut = (_channels(view, channels) for view in (self.gradient, self.x, self.mean, self.coefficients))
        return MeanTermsStep(self.node, *cut)


class NotedTerms:
    """The terms that gradients lack, as the steps of backward are laid out."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._noted: list[_Noted] = []

    def note(self, node: Node, gradient: View, x: View, mean: View) -> MeanTerms:
        """Where backward of a normalization of x puts the coefficients of what its gradient lacks."""
        rows = gradient.spec.size // (gradient.spec.shape[-1] or 1)
        for each in self._noted:
            same = each.gradient.buffer is gradient.buffer and _same_statistics(each.node, node)
            channels = each.channels_of(gradient) if same else None
            if channels is not None and any(first <= channels[0] and channels[1] <= end for first, end in each.left):
                return MeanTerms(_channels(each.coefficients, channels), True, rows)
        self.subtract(gradient)
        coefficients = fresh(f"{node.name}.mean_terms", "saved", moments_spec(x.spec))
        whole = (0, x.spec.shape[-1] or 0)
        self._noted.append(_Noted(node, gradient, x, mean, coefficients, [whole]))
        return MeanTerms(coefficients, False, rows)

    def subtract(self, view: View | None = None) -> None:
        """Lays out what completes the gradients in a view that is about to be read; None: all."""
        for each in list(self._noted):
            if view is None:
                wanted = list(each.left)
            elif not each.gradient.overlaps(view):
                continue
            else:
                channels = each.channels_of(view)
                wanted = list(each.left) if channels is None else _common(each.left, channels)
            for channels in wanted:
                self.steps.append(each.part(channels))
                each.left = _without(each.left, channels)
            if not each.left:
                self._noted.remove(each)


def _same_statistics(one: Node, other: Node) -> bool:
    """Whether two normalizations of the same x have its mean over the same samples."""
    assert isinstance(one.op, BatchNorm)
    assert isinstance(other.op, BatchNorm)
    return one.op.synchronized == other.op.synchronized


def _channels(view: View, channels: Channels) -> View:
    """These channels of a view, its last axis."""
    shape = (*view.spec.shape[:-1], channels[1] - channels[0])
    start = (*[0] * (len(shape) - 1), channels[0])
    return view.part(start, Spec(shape, view.spec.dtype))


def _common(left: list[Channels], wanted: Channels) -> list[Channels]:
    parts = [(max(first, wanted[0]), min(end, wanted[1])) for first, end in left]
    return [(first, end) for first, end in parts if first < end]


def _without(left: list[Channels], taken: Channels) -> list[Channels]:
    parts = [part for first, end in left for part in ((first, min(end, taken[0])), (max(first, taken[1]), end))]
    return [(first, end) for first, end in parts if first < end]
