"""What an operator is: shapes, what it retains, and how its two passes are bound to arrays.

An `Op` is a frozen dataclass whose fields are its attributes (strides, axis, ...).  It knows nothing of graphs: it
infers output shapes, says which arrays backward reads, and binds a pass to arrays, once, ahead of time.  A bound pass
is a callable without arguments that allocates nothing; the plan makes one for each node and the executor calls them
in turn.

Calling an op applies it: on symbolic tensors it adds a node to their graph, on NumPy arrays it computes at once.
Parameters are inputs like all others: `Conv(...)(x, kernel, bias)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

Call = Callable[[], None]


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
        return self.size * np.dtype(self.dtype).itemsize


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
class Reading:
    """What an operator makes of an image as it reads it: act((x - mean) * scale + beta), ReLU or nothing.

    mean, scale and beta are vectors of its channels, or in a plan where they lie; beta may be None.
    """

    mean: Any
    scale: Any
    beta: Any
    relu: bool


@dataclass(frozen=True)
class Slopes:
    """Sums of batch normalization's backward, found by the operator that completes the gradient of its output.

    x: what is normalized, as `reading` says.  sums (2, 1, 1, c): of g = dy * act'(z), and of g * (x - mean), per
    channel, z being what the activation is applied to.  Arrays, or in a plan where they lie.
    """

    x: Any
    reading: Reading
    sums: Any


@dataclass
class RunState:
    """What changes from one execution to the next; bound passes read it when they run.

    seed: of all random operators of the model; step: executions so far, the same in forward and backward of one step;
    sample_offset: index in the global batch of this process's first sample (0 without distribution).
    draws: of random operators that are active outside of training, so far.
    part_done: called with the name of a part by passes that consist of several, when the part is done (see `in_parts`).
    portions: by kind, the portion of the global batch that this process has (see ops.Portion; 1 where it is not told).
    synchronizer: makes statistics of this process's samples those of the global batch; None without distribution.
    """

    seed: int = 0
    step: int = 0
    sample_offset: int = 0
    part_done: Callable[[str], None] | None = None
    draws: int = 0
    portions: dict[str, float] = field(default_factory=dict)
    synchronizer: Any = None


@dataclass
class Pass:
    """The arrays that one pass of a node is bound to.

    x, y: inputs and outputs.  In backward an entry that `Op.retains` did not name is None.
    dy: gradients of the outputs (backward; None where an output has no gradient).
    dx: gradients of the inputs, to be written (backward; None where not wanted).
    accumulate: for each input, whether to add to `dx` instead of overwriting it (only inputs in `Op.accumulates`).
    saved: the arrays of `Op.saves`, written in forward, read in backward.
    workspace: at least as many bytes as `Op.workspace` asked for, aligned to 64; its contents are lost between passes.
    training: whether the forward belongs to a training step.
    run: see RunState.  stream: a number of its own for every random node of a graph.
    reading: what x[0] is, if not what lies there; given only to operators that say so in `normalizes_input`.
    slopes: in backward, sums that the pass gathers from dx[0] as it completes it; given only to operators that say so
    in `gathers_slopes`.  sums: in backward of a normalization, such sums of dy[0], (2, 1, 1, c); else None.

    Arrays with four dimensions may be channel slices: each pixel's channels are contiguous, pixels are `ld` apart.
    """

    x: Sequence[Any] = ()
    y: Sequence[Any] = ()
    dy: Sequence[Any] = ()
    dx: Sequence[Any] = ()
    accumulate: Sequence[bool] = ()
    saved: Mapping[str, np.ndarray] = field(default_factory=dict)
    workspace: np.ndarray | None = None
    training: bool = False
    run: RunState = field(default_factory=RunState)
    stream: int = 0
    reading: Reading | None = None
    slopes: Slopes | None = None
    sums: Any = None


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
    #: False where forward may not run a second time in a step (it has effects of its own); see `recompute`
    replayable: ClassVar[bool] = True
    #: inputs that `recompute` reads; None: all
    replay_inputs: ClassVar[tuple[int, ...] | None] = None
    #: arrays of `saves` that `recompute` writes: where the output is recomputed, forward may find them absent
    replay_saves: ClassVar[tuple[str, ...]] = ()
    #: outputs, the last ones, that nobody differentiates or keeps; `recompute` leaves them out
    auxiliary: ClassVar[int] = 0
    #: input of which `backward_rows` computes some rows of the gradient at a time
    splits: ClassVar[int | None] = None
    #: inputs that must be dense even where others need not (filters)
    dense_inputs: ClassVar[tuple[int, ...]] = ()

    @property
    def name(self) -> str:
        """Lower-case kind of the operator, as tables and traces show it."""
        return type(self).__name__.lower()

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        """Specs of the outputs.  Raises ValueError naming what was expected and what came."""
        raise NotImplementedError

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        """What backward reads; needs[i] says whether input i wants a gradient."""
        return Retained()

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        """Further arrays that forward leaves for backward, by name."""
        return {}

    def workspace(self, direction: str, *inputs: Spec) -> int:
        """Bytes of scratch memory of a pass; direction is "forward" (also of `recompute`) or "backward"."""
        return 0

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        """Arithmetic of each part of a pass, by the names of `in_parts`; nothing where moving bytes is what it costs.

        direction is "forward" or "backward".
        """
        return {}

    def forward(self, p: Pass) -> Call:
        """Binds the forward pass."""
        raise NotImplementedError

    def backward(self, p: Pass) -> Call:
        """Binds the backward pass: writes every p.dx that is not None (parameters' gradients are among them)."""
        raise NotImplementedError

    def backward_rows(self, p: Pass, rows: slice) -> Call:
        """Binds what writes these rows (along the first axis) of the gradient of input `splits` to its p.dx.

        It runs after `backward`, in which that gradient was not wanted, and reads dy as backward has left it.
        """
        raise NotImplementedError

    def normalizes_input(self, *inputs: Spec) -> bool:
        """Whether forward and backward can take input 0 through a `Reading`."""
        return False

    def gathers_slopes(self, *inputs: Spec) -> bool:
        """Whether backward can gather `Slopes` from the gradient of input 0."""
        return False

    def recompute(self, p: Pass) -> Call:
        """Binds what writes the output once more, before backward, from `replay_inputs` and the saved arrays.

        The result has the bits of forward's.  State is not touched again.
        """
        return self.forward(p)

    def __call__(self, *inputs: Any) -> Any:
        """Applies the op: adds a node to the inputs' graph, or computes at once when all inputs are arrays."""
        for value in inputs:
            if hasattr(value, "apply_op"):
                return value.apply_op(self, inputs)
        return compute(self, *inputs)


def in_parts(calls: Mapping[str, Call], state: RunState) -> Call:
    """One call of several in order, which tells `state.part_done` after each one its name.

    Names: "forward", "forward_bias", "forward_moments", "backward_bias" (with the activation's slope),
    "backward_data", "backward_weights".
    """
    parts = list(calls.items())

    def run() -> None:
        for name, call in parts:
            call()
            if state.part_done is not None:
                state.part_done(name)

    return run


def outputs_of(op: Op, *specs: Spec) -> tuple[Spec, ...]:
    """op.infer's result as a tuple."""
    result = op.infer(*specs)
    return result if isinstance(result, tuple) else (result,)


def spec_of(array: np.ndarray) -> Spec:
    return Spec(tuple(array.shape), array.dtype.name)


def scratch(nbytes: int) -> np.ndarray:
    """A workspace of nbytes that is aligned to 64."""
    buffer = np.empty(nbytes + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + nbytes]


def _empty(spec: Spec) -> np.ndarray:
    return np.empty(cast("tuple[int, ...]", spec.shape), spec.dtype)


def compute(op: Op, *inputs: Any, training: bool = False) -> Any:
    """The op's forward on NumPy arrays, without a graph; returns an array or a tuple of them."""
    arrays = [np.asarray(value, order="C") for value in inputs]
    specs = [spec_of(array) for array in arrays]
    y = [_empty(spec) for spec in outputs_of(op, *specs)]
    if op.is_view:
        return arrays[0].reshape(y[0].shape)
    saved = {key: _empty(spec) for key, spec in op.saves(*specs, training=training).items()}
    op.forward(
        Pass(x=arrays, y=y, saved=saved, workspace=scratch(op.workspace("forward", *specs)), training=training)
    )()
    return y[0] if len(y) == 1 else tuple(y)
