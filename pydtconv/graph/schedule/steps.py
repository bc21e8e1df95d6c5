"""The steps of a plan: what an executor calls, in order.  Each kind of step binds itself to arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from pydtconv.devices.device import Device
from pydtconv.dtypes import BFLOAT16
from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.graph.memory.storage import View, fresh
from pydtconv.kernels.base import BackwardReductions, Call, MeanTerms, Pass, Prologue, RunState, scratch
from pydtconv.kernels.lookup import find
from pydtconv.ops.arithmetic import Add
from pydtconv.ops.base import Spec


class Binder(Protocol):
    """What a step is bound to: the memory of a plan, and the state of its model."""

    training: bool
    state: RunState
    device: Device
    launcher: Any  # of the device, None on a CPU
    waits: dict[Step, Call]  # of the asynchronous steps bound so far, what waits for them

    def array(self, view: View) -> np.ndarray: ...

    def transfers(self) -> Any:
        """What moves storages out of the arena and back (see transfers.py)."""

    def stream(self, node: Node) -> int:
        """A number of its own for every node."""

    def update(self, variable: Tensor, gradient: np.ndarray, rows: slice | None) -> Call:
        """The optimizer's call for a variable, or for some rows of it."""


@dataclass(eq=False)
class Step:
    """One call of the executor, for a node.

    ready: variables whose gradient is complete after this step, or with `UpdateStep` before it.
    """

    kind: ClassVar[str]  #: its name in tables and traces

    node: Node
    ready: tuple[Tensor, ...] = field(default=(), kw_only=True)

    def reads(self) -> list[View]:
        """The views whose contents the step needs."""
        raise NotImplementedError

    def writes(self) -> list[View]:
        """The views whose contents the step changes; workspaces are among them."""
        raise NotImplementedError

    def views(self) -> list[View]:
        """All memory that is in use while the step runs."""
        return [*self.reads(), *self.writes()]

    def gradients(self) -> Sequence[View | None]:
        """The gradients to which the step contributes."""
        return ()

    def releases(self) -> Sequence[View]:
        """Views whose storage is free after the step, until another step writes it: their contents are elsewhere."""
        return ()

    def bind(self, binder: Binder) -> Call:
        raise NotImplementedError


Views = Sequence[View | None]


@dataclass(eq=False)
class PassStep(Step):
    """A pass of the node's operator.

    transient_bytes: workspace that is allocated when the step runs, for kernels whose workspace is not placed.
    prologue: how the first input is normalized as it is read, by views.
    """

    of_pass: ClassVar[str] = "forward"  #: the operator's pass whose cost and workspace the step has
    part: ClassVar[str] = ""  #: which part of a pass it is; "" for all of it

    x: Views = ()
    y: Views = ()
    saved: dict[str, View] = field(default_factory=dict)
    workspace: View | None = None
    transient_bytes: int = 0
    prologue: Prologue | None = None

    def reads(self) -> list[View]:
        return [*_present(self.x), *_coefficients(self.prologue)]

    def writes(self) -> list[View]:
        return [*_present(self.y), *self.saved.values(), *_present([self.workspace])]

    def views(self) -> list[View]:
        every = _present([*self.x, *self.y, *self.saved.values(), self.workspace])
        return every if self.prologue is None else [*every, *_coefficients(self.prologue)]

    @property
    def share(self) -> float:
        """The portion of the pass that the step computes."""
        return 1.0

    def _pass(self) -> Callable[[Pass], Call]:
        """What binds the operator's pass."""
        raise NotImplementedError

    def _arguments(self, binder: Binder) -> dict[str, Any]:
        return {
            "x": _arrays(binder, self.x),
            "y": _arrays(binder, self.y),
            "saved": {key: binder.array(view) for key, view in self.saved.items()},
            "training": binder.training,
            "run": binder.state,
            "stream": binder.stream(self.node),
            "launcher": binder.launcher,
            "prologue": None if self.prologue is None else _bound_prologue(binder, self.prologue),
        }

    def bind(self, binder: Binder) -> Call:
        bind, make = self._pass(), functools.partial(Pass, **self._arguments(binder))
        if self.transient_bytes and binder.launcher is not None:
            workspace = binder.device.zeros((self.transient_bytes,), np.uint8)
            return bind(make(workspace=workspace))
        if self.transient_bytes:
            return lambda: bind(make(workspace=scratch(self.transient_bytes)))()
        return bind(make(workspace=None if self.workspace is None else binder.array(self.workspace)))


@dataclass(eq=False)
class ForwardStep(PassStep):
    """y = op(x)."""

    kind = "forward"

    def _pass(self) -> Callable[[Pass], Call]:
        return self.node.kernel.forward


@dataclass(eq=False)
class RecomputeStep(PassStep):
    """y = op(x) once more, before backward reads it."""

    kind = "recompute"

    def _pass(self) -> Callable[[Pass], Call]:
        return self.node.kernel.recompute


@dataclass(eq=False)
class BackwardStep(PassStep):
    """Gradients dx of the inputs, from those of the outputs, dy.

    rows: where it computes only these rows of the one gradient in dx.
    reductions: sums of the batch normalization before the node, which it finds while it completes dx[0], by views.
    sums: of a batch normalization, such sums that another node has found.  mean_terms: where it puts what the gradient
    of its input lacks, which that node has written.
    """

    kind = "backward"
    of_pass = "backward"

    dy: Views = ()
    dx: Views = ()
    accumulate: tuple[bool, ...] = ()
    rows: slice | None = None
    reductions: BackwardReductions | None = None
    sums: View | None = None
    mean_terms: MeanTerms | None = None

    def reads(self) -> list[View]:
        found = [*_present([*self.x, *self.y, *self.dy]), *self.saved.values(), *_present([self.sums])]
        found += _coefficients(self.prologue)
        if self.reductions is not None:
            found += [self.reductions.x, *_coefficients(self.reductions.prologue)]
        if self.mean_terms is not None and self.mean_terms.adds:
            found.append(self.mean_terms.coefficients)
        return found

    def writes(self) -> list[View]:
        found = _present([*self.dx, self.workspace, None if self.reductions is None else self.reductions.sums])
        if self.mean_terms is not None:
            found.append(self.mean_terms.coefficients)
        return [*found, *_present(self.dy)] if self.node.op.overwrites_dy else found

    def views(self) -> list[View]:
        every = [*self.x, *self.y, *self.dy, *self.dx, *self.saved.values(), self.workspace, self.sums]
        if self.reductions is not None:
            every += [self.reductions.x, self.reductions.sums]
        if self.mean_terms is not None:
            every.append(self.mean_terms.coefficients)
        every += _coefficients(self.prologue)
        if self.reductions is not None:
            every += _coefficients(self.reductions.prologue)
        return _present(every)

    def gradients(self) -> Sequence[View | None]:
        return self.dx

    @property
    def share(self) -> float:
        """Of the rows of a gradient."""
        if self.rows is None:
            return 1.0
        extent = self.node.inputs[self.node.op.splits or 0].shape[0] or 1
        return (self.rows.stop - self.rows.start) / extent

    def _pass(self) -> Callable[[Pass], Call]:
        if self.rows is not None:
            return functools.partial(self.node.kernel.backward_rows, rows=self.rows)
        return self.node.kernel.backward

    def _arguments(self, binder: Binder) -> dict[str, Any]:
        found, terms = self.reductions, self.mean_terms
        return super()._arguments(binder) | {
            "dy": _arrays(binder, self.dy),
            "dx": _arrays(binder, self.dx),
            "accumulate": self.accumulate,
            "reductions": None if found is None else _bound_reductions(binder, found),
            "sums": None if self.sums is None else binder.array(self.sums),
            "mean_terms": None if terms is None else replace(terms, coefficients=binder.array(terms.coefficients)),
        }


@dataclass(eq=False)
class MeanTermsStep(Step):
    """dx -= offset + (x - mean) * slope, of some channels: what the gradient of x lacks (see MeanTerms)."""

    kind = "mean terms"

    dx: View
    x: View
    mean: View
    coefficients: View

    def reads(self) -> list[View]:
        return [self.x, self.mean, self.coefficients, self.dx]

    def writes(self) -> list[View]:
        return [self.dx]

    def views(self) -> list[View]:
        return [self.x, self.mean, self.coefficients, self.dx]

    def gradients(self) -> Sequence[View | None]:
        return (self.dx,)

    def bind(self, binder: Binder) -> Call:
        x, mean, coefficients, dx = map(binder.array, self.views())
        return self.node.kernel.subtract_means(x, mean, coefficients, dx)


@dataclass(eq=False)
class CopyStep(Step):
    """target = source."""

    kind = "copy"

    source: View
    target: View

    def reads(self) -> list[View]:
        return [self.source]

    def writes(self) -> list[View]:
        return [self.target]

    def gradients(self) -> Sequence[View | None]:
        return (self.target,)

    def bind(self, binder: Binder) -> Call:
        return binder.device.bind_copy(binder.array(self.source), binder.array(self.target))


@dataclass(eq=False)
class AddStep(CopyStep):
    """target += source."""

    kind = "add"

    def reads(self) -> list[View]:
        return [self.source, self.target]

    def bind(self, binder: Binder) -> Call:
        total, source = binder.array(self.target), binder.array(self.source)
        if self.target.spec.dtype != BFLOAT16:
            return binder.device.bind_add(source, total)
        return find(Add(), self.node.device, BFLOAT16).forward(Pass(x=[total, source], y=[total]))


@dataclass(eq=False)
class UpdateStep(Step):
    """The optimizer's step for a variable by its gradient, or for some rows of it."""

    kind = "update"

    gradient: View
    variable: Tensor
    rows: slice | None = None

    def reads(self) -> list[View]:
        return [self.gradient]

    def writes(self) -> list[View]:
        return [View(self.variable, self.variable.spec)]

    def bind(self, binder: Binder) -> Call:
        return binder.update(self.variable, binder.array(self.gradient).reshape(-1), self.rows)


def _present(views: Views) -> list[View]:
    return [view for view in views if view is not None]


def _coefficients(prologue: Prologue | None) -> list[View]:
    return [] if prologue is None else _present([prologue.mean, prologue.scale, prologue.beta])


def _arrays(binder: Binder, views: Views) -> list[np.ndarray | None]:
    return [None if view is None else binder.array(view) for view in views]


def _bound_reductions(binder: Binder, where: BackwardReductions) -> BackwardReductions:
    x, sums = binder.array(where.x), binder.array(where.sums)
    return BackwardReductions(x, _bound_prologue(binder, where.prologue), sums, where.bypass)


def _bound_prologue(binder: Binder, where: Prologue) -> Prologue:
    beta = None if where.beta is None else binder.array(where.beta)
    return Prologue(binder.array(where.mean), binder.array(where.scale), beta, where.activation)


@dataclass(frozen=True, eq=False)
class ParameterGradient:
    """The buffer of a variable's gradient: its slice of the store's flat array."""

    tensor: Tensor


class LossGradient:
    """The buffer of d loss / d loss = 1."""


#: bytes of shared memory in which a process's gradients wait for those of others
STAGED = 2 << 20


@dataclass(frozen=True)
class Updates:
    """What an optimizer can do while backward runs: update each variable, and parts of large ones.

    by_rows: whether it may be given the rows of a gradient one after the other.  sharers: how many processes of a host
    have one copy of variables and slots, of which each updates a part.
    """

    by_rows: bool = True
    sharers: int = 1


class Steps(list[Step]):
    """The steps of a plan as they are laid out."""

    def run(self, step: PassStep) -> None:
        """Appends a pass of a node.

        Its workspace is placed, or its size noted where the kernel wants it at call time.
        """
        node = step.node
        nbytes = node.kernel.workspace_besides(step.saved, step.of_pass, *(tensor.spec for tensor in node.inputs))
        if nbytes and not node.kernel.persistent:
            step.transient_bytes = nbytes
        elif nbytes:
            step.workspace = fresh(f"{node.name}.{step.kind}", "workspace", Spec((nbytes,), "uint8"))
        self.append(step)

    def copy_view(self, node: Node, source: View, target: View) -> None:
        self.append(CopyStep(node, source, target))

    def add_view(self, node: Node, source: View, target: View) -> None:
        self.append(AddStep(node, source, target))
