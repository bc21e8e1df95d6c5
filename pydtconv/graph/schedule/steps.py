"""What a plan is made of: calls of the executor, in their order."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.graph.memory.storage import View, fresh
from pydtconv.kernels.base import BackwardReductions, Prologue
from pydtconv.ops.base import Spec


@dataclass(eq=False)
class Step:
    """One call of the executor.

    direction: "forward", "backward" or "recompute" (a pass of the node), "copy" (y = x), "add" (y += x) or "update"
    (the optimizer's, of the variable y by its gradient x).
    rows: of backward, where it computes only these rows of the one gradient in dx; of update, those of the variable.
    transient_bytes: workspace that is allocated when the step runs, for kernels whose workspace is not placed.
    ready: variables whose gradient is complete after this step, or with "update" before it.
    prologue, reductions, sums: of the pass (see Pass), by views.
    """

    direction: str
    node: Node
    x: tuple[View | None, ...] = ()
    y: tuple[View | None, ...] = ()
    dy: tuple[View | None, ...] = ()
    dx: tuple[View | None, ...] = ()
    accumulate: tuple[bool, ...] = ()
    saved: dict[str, View] = field(default_factory=dict)
    workspace: View | None = None
    transient_bytes: int = 0
    ready: tuple[Tensor, ...] = ()
    rows: slice | None = None
    prologue: Prologue | None = None
    reductions: BackwardReductions | None = None
    sums: View | None = None

    def views(self) -> list[View]:
        every = [*self.x, *self.y, *self.dy, *self.dx, *self.saved.values(), self.workspace, self.sums]
        if self.reductions is not None:
            every += [self.reductions.x, self.reductions.sums]
        for prologue in (self.prologue, None if self.reductions is None else self.reductions.prologue):
            if prologue is not None:
                every += [prologue.mean, prologue.scale, prologue.beta]
        return [view for view in every if view is not None]


@dataclass(frozen=True, eq=False)
class ParameterGradient:
    """Home of the gradient of a variable: its slice of the store's flat array."""

    tensor: Tensor


class LossGradient:
    """Home of d loss / d loss = 1."""


@dataclass(frozen=True)
class Updates:
    """What an optimizer can do while backward runs: update each variable, and parts of large ones.

    by_rows: whether it may be given the rows of a gradient one after the other.
    """

    by_rows: bool = True


class Steps(list[Step]):
    """The steps of a plan as they are laid out."""

    def run(self, step: Step) -> None:
        """Appends a pass of a node.

        Its workspace is placed, or its size noted where the kernel wants it at call time.
        """
        node = step.node
        direction = "backward" if step.direction == "backward" else "forward"
        kernel = node.kernel
        nbytes = kernel.workspace(direction, *(tensor.spec for tensor in node.inputs))
        if nbytes and not kernel.persistent:
            step.transient_bytes = nbytes
        elif nbytes:
            step.workspace = fresh(f"{node.name}.{step.direction}", "workspace", Spec((nbytes,), "uint8"))
        self.append(step)

    def copy_view(self, node: Node, x: View, y: View) -> None:
        self.append(Step("copy", node, x=(x,), y=(y,)))

    def add_view(self, node: Node, x: View, y: View) -> None:
        self.append(Step("add", node, x=(x,), y=(y,)))


def update(node: Node, gradient: View, tensor: Tensor, ready: tuple[Tensor, ...], rows: slice | None = None) -> Step:
    """The optimizer's step for a variable, or for some rows of it."""
    return Step("update", node, x=(gradient,), y=(View(tensor, tensor.spec),), ready=ready, rows=rows)
