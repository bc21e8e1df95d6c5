"""What an operator is: shapes, costs, what it retains and what it can take in.

An `Op` is a frozen dataclass whose fields are its attributes (strides, axis, ...).  It only declares: it infers output
shapes, says which arrays backward reads, which storage may be shared, what a pass costs.  It knows neither graphs nor
what computes it: a kernel (pydtconv/kernels) does that, found by operator, device and dtype.

Calling an op applies it: on symbolic tensors it adds a node to their graph, on NumPy arrays it computes at once.
Parameters are inputs like all others: `Conv(...)(x, kernel, bias)`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from pydtconv import dtypes, hooks
from pydtconv.extents import check, check_elements
from pydtconv.serialization.budget import claim

__all__ = ["Op", "Retained", "Spec", "Window"]

#: why something is not there, by what it is
Reasons = Mapping[str, str]

#: the functions of `pydtconv.ops`, which enters them: for formulas, which run when all is imported
functions: Any = SimpleNamespace()

#: bytes of an operator in a graph, about
_NODE = 1024


@dataclass(frozen=True)
class Spec:
    """Shape and dtype of an array; a dimension of None (only ever the batch) is not known yet."""

    shape: tuple[int | None, ...]
    dtype: str = "float32"

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            if extent is None:
                raise ValueError(f"the size of shape {self.shape} is not known before the batch size is")
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        return self.size * dtypes.itemsize(self.dtype)


def is_image(shape: tuple[int | None, ...]) -> bool:
    """Whether a shape is one of images of one to three axes, (n, *spatial, c)."""
    return 3 <= len(shape) <= 5


@dataclass(frozen=True)
class Retained:
    """Indices of the inputs and outputs that backward reads."""

    x: tuple[int, ...] = ()
    y: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cost:
    """Arithmetic of a part of a pass.

    flops: multiplications and additions of the direct method.  multiplications: the fewest of any method known.
    """

    flops: int
    multiplications: int


@dataclass(frozen=True)
class Window:
    """How an operator walks along one axis of an image: a window of `kernel` elements, `dilation` apart.

    Output element i is made of x[i * stride - before + k * dilation] for k = 0 ... kernel - 1; `before` and `after` are
    the elements of padding at both ends.  transposed: the other way round, each x[i] goes to these elements of y.
    """

    kernel: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    transposed: bool = False

    @property
    def reach(self) -> int:
        """Elements from the first of a window to its last."""
        return (self.kernel - 1) * self.dilation + 1

    def outputs(self, extent: int) -> int:
        """Windows that fit into this many elements and the padding."""
        return (extent + self.before + self.after - self.reach) // self.stride + 1


class Op:
    """Base of all operators.  Subclasses are frozen dataclasses."""

    #: inputs whose storage the (only) output may take over, if nobody reads that input afterwards
    inplace: ClassVar[tuple[int, ...]] = ()
    #: inputs whose dx may be written over dy's storage
    inplace_backward: ClassVar[tuple[int, ...]] = ()
    #: inputs, one at most, whose dx may be written over the output where backward reads that
    replaces_y: ClassVar[tuple[int, ...]] = ()
    #: inputs whose dx is dy itself, as it is after backward has run: the plan aliases it and their p.dx is None (inputs
    #: that are broadcast get a p.dx as others do)
    passes_dy: ClassVar[tuple[int, ...]] = ()
    #: inputs for which backward can add to dx
    accumulates: ClassVar[tuple[int, ...]] = ()
    #: whether backward uses dy's storage as scratch and leaves it changed
    overwrites_dy: ClassVar[bool] = False
    #: inputs that are state: updated in place by forward in training (moving averages); they get no gradient
    updates: ClassVar[tuple[int, ...]] = ()
    #: inputs that never get a gradient (labels, sample weights)
    nondifferentiable: ClassVar[tuple[int, ...]] = ()
    #: True when the output is a view of input 0 with the same elements (reshape): no pass runs
    is_view: ClassVar[bool] = False
    #: True when every input must be dense (no channel slices); the plan copies where needed
    dense: ClassVar[bool] = False
    #: True when it joins its inputs along `axis`; the plan lets them lie in the output where it can
    concatenates: ClassVar[bool] = False
    #: False where forward may not run a second time in a step (it has effects of its own); see `Kernel.recompute`
    replayable: ClassVar[bool] = True
    #: whether `recompute` leaves the state alone that `updates` names
    replay_keeps_state: ClassVar[bool] = False
    #: inputs that `recompute` reads; None: all
    replay_inputs: ClassVar[tuple[int, ...] | None] = None
    #: arrays of `saves` that `recompute` writes: where the output is recomputed, forward may find them absent
    replay_saves: ClassVar[tuple[str, ...]] = ()
    #: outputs, the last ones, that nobody differentiates or keeps; `recompute` leaves them out
    auxiliary: ClassVar[int] = 0
    #: whether its kernel draws random numbers, by a stream of its own
    draws: ClassVar[bool] = False
    #: input of which `backward_rows` computes some rows of the gradient at a time
    splits: ClassVar[int | None] = None
    #: whether constants among the inputs keep their dtype; else they get that of the first input
    mixes_dtypes: ClassVar[bool] = False
    #: inputs that must be dense even where others need not (filters)
    dense_inputs: ClassVar[tuple[int, ...]] = ()
    #: passes, as `pydtconv.conv` calls them, for which its kernel chooses among algorithms: that of y, of dx and of dw
    passes: ClassVar[tuple[str, ...]] = ()

    #: how it is cut where images are: the name of a rule of graph/spatial/rules.py; by default its inputs are gathered
    mesh: ClassVar[str] = "whole_inputs"
    #: the operator of ONNX that it is, where that broadcasts the same inputs and has no attributes; "Identity": but in
    #: training.  Others have rows in interchange/onnx/*.py.
    onnx: ClassVar[str] = ""
    #: why something is not there, by what it is: "gpu", "onnx", "gradient" (in operators)
    lacks: ClassVar[Reasons] = {}

    # what it takes in from operators that follow it, so that their results need not be stored

    #: whether a bias may be its third input, behind x and w
    takes_bias: ClassVar[bool] = False
    #: whether `activation` may be any of ops.activation.FUSABLE
    takes_activation: ClassVar[bool] = False
    #: what `activation` may be besides, without a residual: kinds whose derivative does not follow from the result
    smooth_activations: ClassVar[tuple[str, ...]] = ()
    #: whether `residual` may be True
    takes_residual: ClassVar[bool] = False
    #: attributes that are numbers of elements: extents, steps, paddings; how large they may be, `pydtconv.extents` says
    extent_fields: ClassVar[tuple[str, ...]] = ()
    #: the activation that is applied to its result; alpha is its parameter
    activation: str | None = None
    #: whether the last input is of the output's shape and is added to the result before the activation
    residual: bool = False
    #: whether the state that it updates is the same in all processes without the help of others
    synchronized: bool = False

    @property
    def name(self) -> str:
        """Lower-case kind of the operator, as tables and traces show it."""
        return type(self).__name__.lower()

    @property
    def exactly(self) -> Hashable:
        """What it shares with operators that do the same, not with those of 0.0 and -0.0, or 1 and True.

        With attributes that have no hash, arrays and lists, it shares nothing with others.
        """
        try:
            hash(self)
        except TypeError:
            return object()
        return self, repr(vars(self))

    def given_extents(self) -> dict[str, Any]:
        """The values of `extent_fields`, by name."""
        return {name: getattr(self, name) for name in self.extent_fields}

    def least_extent(self, name: str) -> int:
        """The least value of one of them."""
        return 0

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        """Specs of the outputs.  Raises ValueError naming what was expected and what came."""
        raise NotImplementedError

    #: formula(op, *inputs): the operator made of other operators; gradients that are differentiated again go through it
    formula: ClassVar[Callable[..., Any] | None] = None

    #: gradient(op, x, y, dy): that of each input, or None, by inputs, output and the output's gradient.  It is made of
    #: functions of `pydtconv.ops`, for gradients that are differentiated again, and leaves a fused activation and a
    #: residual out.  By default, and where it is NotImplemented, `formula` is differentiated.
    gradient: ClassVar[Callable[..., Any] | None] = None

    def check_differentiable(self) -> None:
        """Raises NotImplementedError where there is a gradient that is not here."""

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        """What backward reads; needs[i] says whether input i wants a gradient."""
        return Retained()

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        """Further arrays that forward leaves for backward, by name."""
        return {}

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        """Arithmetic of each part of a pass, by the names of `in_parts`; nothing where moving bytes is what it costs.

        direction is "forward" or "backward".
        """
        return {}

    def reals(self, count: int) -> tuple[int, ...]:
        """Of so many inputs those that are float32 where images are bfloat16: parameters, statistics."""
        return ()

    def replay_cost(self, *inputs: Spec) -> dict[str, Cost]:
        """Arithmetic of `recompute`: that of forward, or none where saved arrays alone bring the output back."""
        return {} if self.replay_inputs == () else self.cost("forward", *inputs)

    def kernel_dtype(self, *inputs: Spec) -> str:
        """The dtype by which its kernel is looked up: that of input 0."""
        return inputs[0].dtype

    def window(self, axis: int, *inputs: Spec) -> Window | None:
        """The window along an axis of input 0; None where that axis has none, as for operators that are no windows."""
        return None

    def place_of_input(self, x: Spec) -> int | None:
        """Bytes from its output's start at which input 0 lies there, unchanged and dense; None where it does not."""
        return None

    def __call__(self, *inputs: Any) -> Any:
        """Applies the op: adds a node to the inputs' graph, or computes at once when all inputs are arrays."""
        for value in inputs:
            if hasattr(value, "apply_op"):
                return value.apply_op(self, inputs)
        graph = hooks.recording_of(inputs)
        if graph is None and self.draws:
            graph = hooks.graph_of_draws()
            if graph is not None:
                inputs = tuple(graph.constant(x, spec_of(x).dtype, x.shape) for x in map(np.asarray, inputs))
        return hooks.compute(self, *inputs) if graph is None else graph.add(self, inputs)


def outputs_of(op: Op, *specs: Spec) -> tuple[Spec, ...]:
    """op.infer's result as a tuple.  Raises ValueError for what is too large, too (see `pydtconv.extents`)."""
    given = op.given_extents()
    for name, value in given.items():
        check(f"{op.name}: {name}", value, op.least_extent(name))
    claim(_NODE, f"the operator {op.name}")
    result = op.infer(*specs)
    result = result if isinstance(result, tuple) else (result,)
    for spec in result:
        check_elements(op.name, spec.shape)
        if given:
            check(f"{op.name}: shape of the result", spec.shape)
    return result


def spec_of(array: np.ndarray) -> Spec:
    return Spec(tuple(array.shape), dtypes.array_dtype(array))
