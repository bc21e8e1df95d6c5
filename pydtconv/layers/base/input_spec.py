"""What a layer expects of its inputs, and the error that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydtconv import tree
from pydtconv.dtypes import name_of
from pydtconv.ops.checks import fits


class InputSpec:
    """Rank, extents and dtype that an input must have; None where all are welcome.

    axes: required extents by axis, such as {-1: 64}; shape: required extents of all axes, None where any is welcome.
    """

    def __init__(
        self,
        dtype: str | None = None,
        shape: Sequence[int | None] | None = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
        optional: bool = False,
    ) -> None:
        self.dtype = None if dtype is None else name_of(dtype)
        self.shape = None if shape is None else tuple(shape)
        self.ndim = ndim if shape is None else len(shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = dict(axes or {})
        self.allow_last_axis_squeeze = allow_last_axis_squeeze
        self.name = name
        self.optional = optional

    def mismatch(self, shape: tuple[int | None, ...], dtype: str) -> str | None:
        """What was expected, where the input is not that; None where it is."""
        ndim = len(shape)
        if self.ndim is not None and ndim != self.ndim and not self.allow_last_axis_squeeze:
            return f"expected {self.ndim} dimensions"
        if self.max_ndim is not None and ndim > self.max_ndim:
            return f"expected at most {self.max_ndim} dimensions"
        if self.min_ndim is not None and ndim < self.min_ndim:
            return f"expected at least {self.min_ndim} dimensions"
        if self.dtype is not None and dtype != self.dtype:
            return f"expected dtype {self.dtype}, not {dtype}"
        for axis, extent in self.axes.items():
            if extent is not None and shape[axis] not in (extent, None):
                return f"expected extent {extent} on axis {axis}"
        if self.shape is not None:
            expected, found = list(self.shape), list(shape)
            if self.allow_last_axis_squeeze:
                expected = expected[:-1] if expected[-1:] == [1] else expected
                found = found[:-1] if found[-1:] == [1] else found
            if len(expected) != len(found) or any(
                e is not None and f is not None and e != f for e, f in zip(expected, found, strict=True)
            ):
                return f"expected shape {self.shape}"
        return None

    def hint(self, shape: tuple[int | None, ...]) -> str:
        """What may have been meant by an input that does not fit: see `shape_hint`."""
        ndim = self.ndim or self.min_ndim or 0
        axes = {axis % ndim: extent for axis, extent in self.axes.items() if -ndim <= axis < ndim}
        return shape_hint(self.shape or tuple(axes.get(axis) for axis in range(ndim)), shape)

    def __repr__(self) -> str:
        fields = {key: value for key, value in vars(self).items() if value}
        return f"InputSpec({', '.join(f'{key}={value!r}' for key, value in fields.items())})"


def shape_hint(wanted: tuple[int | None, ...], got: tuple[int | None, ...]) -> str:
    """What mends an input of the wrong shape, where it lacks its batch axis or has its channels first; else ""."""
    if fits(got, wanted[1:]) and got:
        return "; a single sample needs a batch axis: x[None]"
    ndim = len(wanted)
    if ndim > 2 and len(got) == ndim and got[1] == wanted[-1] and fits(got, (wanted[0], wanted[-1], *wanted[1:-1])):
        return f"; channels come last here: x.transpose({', '.join(map(str, (0, *range(2, ndim), 1)))})"
    return ""


def check_inputs(layer: Any, input_spec: Any, inputs: Any) -> None:
    """Raises ValueError naming the layer, what it expects and what came, where inputs do not fit input_spec."""
    specs = tree.flatten(input_spec)
    if isinstance(inputs, dict) and all(spec is not None and spec.name for spec in specs):
        missing = [spec.name for spec in specs if spec.name not in inputs]
        if missing:
            raise ValueError(f"layer {layer.name!r}: input {missing[0]!r} is missing: got {sorted(inputs)}")
        inputs = [inputs[spec.name] for spec in specs]
    tensors = tree.flatten(inputs)
    kind = f"{type(layer).__name__} {layer.name!r}"
    if len(tensors) != len(specs):
        raise ValueError(f"{kind}: expected {len(specs)} inputs, got {len(tensors)}")
    for index, (tensor, spec) in enumerate(zip(tensors, specs, strict=True)):
        if spec is None or (tensor is None and spec.optional):
            continue
        which = "input" if len(specs) == 1 else f"input {index}"
        if not hasattr(tensor, "shape"):
            raise ValueError(f"{kind}: {which}: expected a tensor, got {tensor!r}")
        shape = tuple(tensor.shape)
        problem = spec.mismatch(shape, str(tensor.dtype))
        if problem:
            raise ValueError(f"{kind}: {which}: {problem}, got shape {shape}{spec.hint(shape)}")
