"""What a kernel is: the passes of one operator on one device, bound to arrays.

A `Kernel` is made for an operator (`self.op`, whose fields are its attributes) and binds passes: `forward`, `backward`,
`recompute`.  Binding looks at arrays, picks code and works out offsets, once; what it returns, a `Call`, takes no
arguments, allocates nothing, and is called in every step.  How an implementation stores and packs what it reads is its
own affair, and so is the choice among algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from pydtconv.ops.base import Op, Spec

Call = Callable[[], None]

OpType = TypeVar("OpType", bound=Op)


@dataclass(frozen=True)
class Prologue:
    """What an operator makes of an image as it reads it: act((x - mean) * scale + beta).

    mean, scale and beta are vectors of its channels, or in a plan where they lie; beta may be None.
    activation: one of conv.activations.OF_NORMALIZED.
    """

    mean: Any
    scale: Any
    beta: Any
    activation: str | None


@dataclass(frozen=True)
class BackwardReductions:
    """Sums of batch normalization's backward, found by the operator that completes the gradient of its output.

    x: what is normalized, as `prologue` says.  sums (2, 1, 1, c): of g = dy * act'(z), and of g * (x - mean), per
    channel, z being what the activation is applied to.  Arrays, or in a plan where they lie.
    bypass: the gradient that is completed is that of x, to which scale * g is a contribution; what that lacks are
    `MeanTerms`.
    """

    x: Any
    prologue: Prologue
    sums: Any
    bypass: bool = False


@dataclass(frozen=True)
class MeanTerms:
    """What is still to be subtracted from a gradient of x: offset + (x - mean) * slope.

    Of dx = scale * (g - mean of g - xhat * mean of g * xhat) they are all but the first term, summed over the batch
    normalizations that read x.  coefficients (2, 1, 1, c): offset and slope; an array, or in a plan where it lies.
    adds: to those that are there.  rows: pixels of x.
    """

    coefficients: Any
    adds: bool
    rows: int


@dataclass(frozen=True)
class RowBlock:
    """Rows of an output, along its first image axis: `out` of image `image`, from the rows `read` of the input.

    padding: before and after what is read.  number: of the block among all of its pass.
    """

    number: int
    image: int
    out: tuple[int, int]
    read: tuple[int, int]
    padding: tuple[int, int]


@dataclass(frozen=True)
class Keepable:
    """What forward can leave for backward, which else computes it again: an array in `Pass.saved`.

    seconds: what both are expected to be faster by.  algorithms: by direction, those that both have to run then.
    within_backward: one part of backward leaves it for another one, which else computes it again.
    of_data: it is of use only where the gradient of the input is wanted.
    """

    name: str
    spec: Spec
    seconds: float
    algorithms: Mapping[str, str]
    within_backward: bool = False
    of_data: bool = False


#: of a stream whose numbers `RunState.draws` counts, so that no step of training draws the same ones
OUTSIDE_OF_TRAINING = 1 << 31


@dataclass
class RunState:
    """What changes from one execution to the next; bound passes read it when they run.

    seed: of all random operators of the model; step: executions so far, the same in forward and backward of one step;
    sample_offset: index in the global batch of this process's first sample (0 without distribution).
    draws: of random operators that are active outside of training, so far.
    part_done: called with the name of a part by passes that consist of several, when the part is done (see `in_parts`).
    samples: of the share of a global batch that this process has; 0 where that does not matter.
    portions: by kind, the portion of the global batch that this process has (see ops.Portion; 1 where it is not told).
    synchronizer: makes statistics of this process's samples those of the global batch; None without distribution.
    exchanger: carries parts of images between processes that share them (see ops/exchange.py); None without any.
    """

    seed: int = 0
    step: int = 0
    draws: int = 0
    sample_offset: int = 0
    samples: int = 0
    part_done: Callable[[str], None] | None = None
    portions: dict[str, float] = field(default_factory=dict)
    synchronizer: Any = None
    exchanger: Any = None

    def first_row(self, rows: int) -> int:
        """Of a tensor with so many rows, the number of the first one in that of the global batch.

        A tensor may have several rows for each sample; where it cannot, all processes have the same one.
        """
        if not self.samples:
            return self.sample_offset
        each, rest = divmod(rows, self.samples)
        return 0 if rest else self.sample_offset * each


@dataclass
class Pass:
    """The arrays that one pass of a node is bound to.

    x, y: inputs and outputs.  In backward an entry that `Op.retains` did not name is None.
    dy: gradients of the outputs (backward; None where an output has no gradient).
    dx: gradients of the inputs, to be written (backward; None where not wanted).
    accumulate: for each input, whether to add to `dx` instead of overwriting it (only inputs in `Op.accumulates`).
    saved: the arrays of `Op.saves`, written in forward, read in backward; perhaps those of `Kernel.keeps`.
    workspace: at least as many bytes as `Kernel.workspace` asked for, aligned to 64; its contents are lost between
    passes.
    training: whether the forward belongs to a training step.
    run: see RunState.  stream: a number of its own for every random node of a graph.
    launcher: what binds kernels of a device with memory of its own (devices/launcher.py); None on a CPU.
    prologue: what x[0] is, if not what lies there; given only to kernels that say so in `takes_prologue`.
    reductions: in backward, sums that the pass gathers from dx[0] as it completes it; given only to kernels that say so
    in `gathers_reductions`.  sums: in backward of a normalization, such sums of dy[0], (2, 1, 1, c); else None.
    mean_terms: where backward of a normalization puts what the gradient of x[0] lacks, instead of computing that.

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
    launcher: Any = None
    prologue: Prologue | None = None
    reductions: BackwardReductions | None = None
    sums: Any = None
    mean_terms: MeanTerms | None = None

    def adds(self, i: int) -> bool:
        """Whether a backward pass adds to dx[i]."""
        return bool(self.accumulate) and bool(self.accumulate[i])


class Kernel(Generic[OpType]):
    """Base of all kernels.  op: the operator that it runs."""

    #: where it runs, as `set_device` takes it
    device = "cpu"

    def __init__(self, op: OpType) -> None:
        self.op = op

    def workspace(self, direction: str, *inputs: Spec) -> int:
        """Bytes of scratch memory of a pass; direction is "forward" (also of `recompute`) or "backward"."""
        return 0

    def workspace_besides(self, kept: Collection[str], direction: str, *inputs: Spec) -> int:
        """The same where these arrays of `AlgorithmKernel.keeps` are there, which need no room then."""
        return self.workspace(direction, *inputs)

    @property
    def persistent(self) -> bool:
        """Whether the plan places workspaces ahead; else each call allocates its own and frees it."""
        return True

    def forward(self, p: Pass) -> Call:
        """Binds the forward pass."""
        raise NotImplementedError

    def backward(self, p: Pass) -> Call:
        """Binds the backward pass: writes every p.dx that is not None (parameters' gradients are among them)."""
        raise NotImplementedError

    def backward_rows(self, p: Pass, rows: slice) -> Call:
        """Binds what writes these rows (along the first axis) of the gradient of input `Op.splits` to its p.dx.

        It runs after `backward`, in which that gradient was not wanted, and reads dy as backward has left it.
        """
        raise NotImplementedError

    def recompute(self, p: Pass) -> Call:
        """Binds what writes the output once more, before backward, from `Op.replay_inputs` and the saved arrays.

        The result has the bits of forward's.  State is not touched again.
        """
        return self.forward(p)

    def takes_prologue(self, activation: str | None, backward: bool, *inputs: Spec) -> bool:
        """Whether forward, and backward if asked for, can take input 0 through a `Prologue` with this activation."""
        return False

    def gathers_reductions(self, *inputs: Spec) -> bool:
        """Whether backward can gather `BackwardReductions` from the gradient of input 0, with any activation."""
        return False

    def subtract_means(self, x: Any, mean: Any, coefficients: Any, dx: Any) -> Call:
        """Binds what subtracts `MeanTerms` from dx, where such a kernel's backward has left them."""
        raise NotImplementedError


class WindowKernel(Kernel[OpType]):
    """What reads windows of images: parts of its passes may run while halos are exchanged between processes."""

    @property
    def rims(self) -> Any:
        """Parts of the passes of an operator that gets halos as a vector (kernels/cpu/rims.py); None for others."""
        return None

    @property
    def works_in_blocks(self) -> bool:
        """Whether there is `forward_blocks`: parts of forward, between which others may run."""
        return False

    def forward_blocks(self, p: Pass, blocks: Sequence[RowBlock], every: Sequence[RowBlock] = ()) -> Call:
        """Binds the forward of some rows of y.  every: all blocks, where these are the last of them.

        What is found of each block for outputs other than y lies in the saved array "blocks", see `block_saves`.
        """
        raise NotImplementedError

    def block_workspace(self, block: RowBlock, *inputs: Spec) -> int:
        """Bytes of scratch memory of `forward_blocks` for one block."""
        raise NotImplementedError

    def block_saves(self, count: int, *inputs: Spec) -> Spec | None:
        """The array that passes of so many blocks share; None for none."""
        raise NotImplementedError


class AlgorithmKernel(WindowKernel[OpType]):
    """A convolution: each of its passes runs by one of several algorithms."""

    def algorithms_for(self, *inputs: Spec, within: int | None = None) -> dict[str, str]:
        """The algorithm of each of `Op.passes`.

        within: bytes of a workspace; where neither the operator nor a variant says which to take, one that needs no
        more, or the least.
        """
        raise NotImplementedError

    def that_normalize(
        self, names: dict[str, str], activation: str | None, backward: bool, *inputs: Spec
    ) -> dict[str, str]:
        """Algorithms with which `takes_prologue` is true, where some are nearly as fast as these; else these."""
        return names

    def that_gather(self, names: dict[str, str], *inputs: Spec) -> dict[str, str]:
        """Algorithms with which `gathers_reductions` is true, where that costs no more than it saves; else these."""
        return names

    def keeps(self, is_open: Collection[str], *inputs: Spec) -> Sequence[Keepable]:
        """What can be kept for backward; is_open: directions whose algorithm may be exchanged for that."""
        return ()

    @property
    def splits_backward(self) -> bool:
        """Whether there is `backward_weights`: a part of backward, before which others may run."""
        return False

    def backward_weights(self, p: Pass) -> Call:
        """Binds what writes dx[1] alone, after a `backward` in which it was not wanted, which has left dy behind."""
        raise NotImplementedError

    def block_problem(self, block: RowBlock, *inputs: Spec) -> Any:
        """What algorithms are chosen for in a block."""
        raise NotImplementedError

    def bypasses_normalization(self, *inputs: Spec) -> bool:
        """Whether it can then write the gradient of what was normalized."""
        return False


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


def nothing() -> None:
    """A bound pass that does nothing."""


def sequence(calls: Sequence[Call]) -> Call:
    """One call that makes all of them in turn."""
    calls = tuple(call for call in calls if call is not nothing)
    if not calls:
        return nothing
    if len(calls) == 1:
        return calls[0]

    def run() -> None:
        for call in calls:
            call()

    return run


def scratch(nbytes: int, alignment: int = 64) -> np.ndarray:
    """A workspace of nbytes that is aligned to 64, or to more."""
    buffer = np.empty(nbytes + alignment, np.uint8)
    start = -buffer.ctypes.data % alignment
    return buffer[start : start + nbytes]
