"""Convolution operators: Conv and DepthwiseConv, and what they share with ConvTranspose.

Images have one to three axes (n, *spatial, c), filters (*kernel, ...) as many.  The operator may name an algorithm of
`pydtconv.conv` for each pass, or a variant that does.  Bias and
activation are part of the operator, so that they cost no pass of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from pydtconv.conv.algorithms import current_name
from pydtconv.conv.cost import fewest_multiplications
from pydtconv.conv.problem import DIRECTIONS, ConvProblem, by_axis
from pydtconv.dtypes import real
from pydtconv.ops.activation import check_fusable
from pydtconv.ops.base import Cost, Op, Retained, Spec, Window, functions
from pydtconv.ops.checks import check_float
from pydtconv.ops.convolution_gradients import by_groups, of_filters, sides
from pydtconv.ops.gradients import by_last_axis, window_taps
from pydtconv.ops.halo import Halo
from pydtconv.ops.moments import moments_spec
from pydtconv.ops.normalization import BatchNorm

__all__ = ["Conv", "DepthwiseConv"]

Algorithm = str | Mapping[str, str] | tuple[tuple[str, str], ...] | None


def _by_direction(algorithm: Any) -> Any:
    """With names of today; names by direction as pairs.  Raises ValueError for what is no Algorithm."""
    if not isinstance(algorithm, (Mapping, tuple, list)):
        return _current(algorithm)
    pairs = [*algorithm.items()] if isinstance(algorithm, Mapping) else algorithm
    if not all(isinstance(each, (tuple, list)) and len(each) == 2 and each[0] in DIRECTIONS for each in pairs):
        raise ValueError(f"algorithm: expected a name, or names by {', '.join(DIRECTIONS)}, got {algorithm!r}")
    return tuple(sorted((direction, _current(name)) for direction, name in pairs))


def _current(name: Any) -> Any:
    """A name of today; behind it, on GPUs, may be a strategy, which the kernel knows."""
    if name in (None, "auto"):
        return name
    first, *strategy = str(name).split(" ", 1)
    return " ".join([current_name(first), *strategy])


@dataclass(frozen=True)
class ConvBase(Op):
    """What the operators share: inputs (x, w) or (x, w, b), each pass of the operator being one of a convolution.

    strides, dilation: an integer, or one for each axis.  padding: "valid", "same" or (before, after) for each axis.
    activation: one whose derivative follows from y.
    algorithm: a name for every pass it has, or names by direction.  variant: None for the active one.
    halo: what the last input has of x beyond its borders, where x is a part of an image; padding is then what the part
    is seen in, and None is a convolution of whole images.
    """

    strides: int | tuple[int, ...] = 1
    padding: Any = "valid"
    dilation: int | tuple[int, ...] = 1
    activation: str | None = None
    alpha: float = 0.0
    algorithm: Algorithm = None
    variant: str | None = None
    halo: Halo | None = field(default=None, kw_only=True, repr=False)

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    dense_inputs: ClassVar[tuple[int, ...]] = (1,)
    replaces_y: ClassVar[tuple[int, ...]] = (0,)  # y tells the activation's slope, which comes first
    passes: ClassVar[tuple[str, ...]] = ("forward", "backward_data", "backward_weights")
    takes_bias: ClassVar[bool] = True
    takes_activation: ClassVar[bool] = True
    mesh: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        object.__setattr__(self, "strides", by_axis(self.strides, "strides"))
        object.__setattr__(self, "dilation", by_axis(self.dilation, "dilation"))
        object.__setattr__(self, "algorithm", _by_direction(self.algorithm))
        check_fusable(self.activation)

    @property
    def overwrites_dy(self) -> bool:  # type: ignore[override]
        return self.activation not in (None, "linear")

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        """The convolution behind this operator, an unknown batch as 1.  Raises ValueError where shapes do not fit."""
        raise NotImplementedError

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        x, w = self._check(inputs)
        if self.halo is not None:
            self.halo.check(self.name, inputs)
        p = self.problem(x, w)
        return Spec((x.shape[0], *self._output_shape(p)[1:]), x.dtype)

    def _output_shape(self, p: ConvProblem) -> tuple[int, ...]:
        return p.y_shape

    def _check(self, inputs: tuple[Spec, ...]) -> tuple[Spec, Spec]:
        if len(inputs) - self._more not in (2, 3):
            last = " and a residual" * self.residual + " and a halo" * (self.halo is not None)
            raise ValueError(f"{self.name}: expected inputs x, w and perhaps b{last}, got {len(inputs)} inputs")
        x, w = inputs[:2]
        check_float(self.name, "x", x.dtype)
        if w.dtype != real(x.dtype):
            raise ValueError(f"{self.name}: w: expected {real(x.dtype)} because x is {x.dtype}, got {w.dtype}")
        shape = (x.shape[0], *self._output_shape(self.problem(x, w))[1:])
        vector = Spec(shape[-1:], real(x.dtype))
        wanted = [("b", self.bias_of(inputs), vector), ("residual", self.residual_of(inputs), Spec(shape, x.dtype))]
        wanted += [("normalization", given, vector) for given in self.coefficients_of(inputs)]
        for name, given, expected in wanted:
            if given is not None and given != expected:
                raise ValueError(
                    f"{self.name}: {name}: expected shape {expected.shape} of {expected.dtype}, got {given.shape} of "
                    f"{given.dtype}"
                )
        return x, w

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(range(1, count - self._images))

    @property
    def _images(self) -> int:
        """Inputs at the end that are images."""
        return self.residual + (self.halo is not None)

    @property
    def _more(self) -> int:
        """Inputs behind x, w and the bias."""
        return self._images

    def coefficients_of(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Those of the inputs that results are normalized with."""
        end = len(inputs) - self._images
        return inputs[end - self._more + self._images : end]

    def bias_of(self, inputs: Sequence[Any]) -> Any:
        """The one of the inputs, or of what belongs to them, that is the bias's; None where there is none."""
        return inputs[2] if len(inputs) - self._more > 2 else None

    def residual_of(self, inputs: Sequence[Any]) -> Any:
        """The one of the inputs that is the residual; None where there is none."""
        return inputs[-self._images] if self.residual else None

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        x = tuple(i for i, other in ((0, 1), (1, 0)) if needs[other])
        if self.halo is not None:
            last = len(needs) - 1
            x = tuple(sorted({*x, *((last,) if needs[1] else ()), *((1,) if needs[last] else ())}))
        return Retained(x=x, y=(0,) if self.overwrites_dy else ())

    def window(self, axis: int, *inputs: Spec) -> Window | None:
        p = self.problem(*inputs[:2])
        if axis not in range(1, p.rank + 1):
            return None
        _, _, kernel, stride, dilation, before, after = p.axes[axis - p.rank - 1]
        return Window(kernel, stride, dilation, before, after)

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        p = self.problem(*inputs[:2])
        roles = ("forward",) if direction == "forward" else ("backward_data", "backward_weights")
        names = self.passes[:1] if direction == "forward" else self.passes[1:]
        return {role: Cost(p.flops, fewest_multiplications(p, name)) for role, name in zip(roles, names, strict=True)}


_DIMENSIONS = {3: "three", 4: "four", 5: "five"}


def sizes_of(op: Op, x: Spec, w: Spec) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of images and of filters of as many axes; an unknown batch counts as 1.  Raises ValueError for others.

    What the operator's strides and dilation say of the number of axes has to agree.
    """
    counts = {len(values) + 2 for values in (op.strides, op.dilation) if isinstance(values, tuple)}  # type: ignore[attr-defined]
    if len(x.shape) not in _DIMENSIONS or counts - {len(x.shape)}:
        many = " and ".join(_DIMENSIONS[count] for count in sorted(counts)) or "three to five"
        raise ValueError(f"{op.name}: x: expected {many} dimensions, known but for the batch, got shape {x.shape}")
    for spec, what in ((x, "x"), (w, "w")):
        if len(spec.shape) != len(x.shape) or None in spec.shape[what == "x" :]:
            raise ValueError(
                f"{op.name}: {what}: expected {_DIMENSIONS[len(x.shape)]} dimensions, known but for the batch, "
                f"got shape {spec.shape}"
            )
    of_x, of_w = (tuple(extent or 0 for extent in spec.shape) for spec in (x, w))
    return (of_x[0] if x.shape[0] is not None else 1, *of_x[1:]), of_w


def taps(rank: int) -> str:
    """The names of the sizes of filters along `rank` axes."""
    return ", ".join(("kd", "kh", "kw")[-rank:])


def no_fit(op: Op, expected: str, got: object) -> ValueError:
    return ValueError(f"{op.name}: w: expected {expected}, got {got}")


@dataclass(frozen=True)
class MeasuredConv(ConvBase):
    """A convolution that may normalize its output, or find the moments of it.

    normalization: y = act(normalized(conv + b) + r), by the moving statistics of a frozen batch normalization, which
    are the inputs behind b: gamma and beta, where it has them, moving mean and variance.  Without a gradient.
    moments: also mean and biased variance of y over all pixels, as an output (2, 1, 1, co) that is not differentiated.
    Where the algorithm can, they are gathered from each block of y while it is in cache.
    """

    moments: bool = field(default=False, kw_only=True)
    normalization: BatchNorm | None = field(default=None, kw_only=True)

    @property
    def _more(self) -> int:
        return self._images + (0 if self.normalization is None else self.normalization.state[1])

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        """What results are normalized with: inverse and scale as of BatchNorm, and b - mean."""
        if self.normalization is None:
            return {}
        vector = self.coefficients_of(inputs)[0]
        return {"inverse": vector, "scale": vector, "offset": vector}

    @property
    def auxiliary(self) -> int:  # type: ignore[override]
        return int(self.moments)

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        y = super().infer(*inputs)
        assert isinstance(y, Spec)
        return (y, moments_spec(y)) if self.moments else y


@dataclass(frozen=True)
class Conv(MeasuredConv):
    """y = act(conv(x, w) + b + r); x (n, *spatial, ci), w (*kernel, ci // groups, co), b (co,).

    residual: the last input is r, an image of y's shape, whose place y may take where it is not normalized; without it
    there is no r.
    """

    groups: int = 1
    residual: bool = False

    takes_residual: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "conv+add" if self.residual else "conv"

    @property
    def inplace(self) -> tuple[int, ...]:  # type: ignore[override]
        return (2, 3) if self.residual and self.normalization is None else ()  # of these, what has y's shape

    @property
    def passes_dy(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.inplace

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        sizes, filters = sizes_of(self, x, w)
        ci, rank = sizes[-1], len(sizes) - 2
        if filters[-2] * self.groups != ci:
            wanted = f"({taps(rank)}, {ci} / {self.groups} groups, filters)"
            raise no_fit(self, f"{wanted} for x of shape {x.shape}", w.shape)
        return ConvProblem.of(sizes, filters, self.strides, self.padding, self.dilation, self.groups, x.dtype)

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        """By images the transposed convolution of dy, by filters the convolution of images with dy."""
        p = self.problem(x[0].spec, x[1].spec)
        extra = []
        for extent, out, kernel, stride, dilation, before, after in p.axes[3 - p.rank :]:
            extra.append(extent - ((out - 1) * stride + (kernel - 1) * dilation + 1 - before - after))
        back = functions.ConvTranspose(self.strides, sides(p), self.dilation, output_padding=tuple(extra))
        over = partial(of_filters, Conv(self.dilation, sides(p), self.strides), x[1].shape[:-2])
        dx, dw = by_groups(self.groups, back, dy, x[1]), by_groups(self.groups, over, x[0], dy)
        return [dx, dw, *[by_last_axis(dy)] * (len(x) - 2)]


@dataclass(frozen=True)
class DepthwiseConv(MeasuredConv):
    """A convolution of each channel by itself; x (n, *spatial, ci), w (*kernel, ci, mult), y (n, *out, ci * mult)."""

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        sizes, (*kernel, inputs, mult) = sizes_of(self, x, w)
        ci = sizes[-1]
        if inputs != ci:
            raise no_fit(self, f"({taps(len(kernel))}, {ci}, multiplier) for x of shape {x.shape}", w.shape)
        filters = (*kernel, 1, ci * mult)
        return ConvProblem.of(sizes, filters, self.strides, self.padding, self.dilation, ci, x.dtype)

    def formula(self, x: Any, w: Any, *bias: Any) -> Any:
        """Tap by tap: w (*kernel, c, multiplier)."""
        kernel, (c, multiplier) = tuple(w.shape[:-2]), tuple(w.shape[-2:])
        p = self.problem(x.spec, w.spec)
        strides, dilation = zip(*((axis[3], axis[4]) for axis in p.axes[3 - p.rank :]), strict=True)
        total: Any = None
        for place, tap in window_taps(
            x, kernel, strides, dilation, sides(p), [axis[1] for axis in p.axes[3 - p.rank :]]
        ):
            term = functions.expand_dims(tap, -1) * w[place]
            total = term if total is None else total + term
        y = functions.reshape(total, (*total.shape[:-2], c * multiplier))
        return y + bias[0] if bias else y
