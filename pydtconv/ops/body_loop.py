"""A loop of the graph: a body of operators that is planned once and runs for each step of a sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.dtypes import FLOATING, real
from pydtconv.ops.base import Cost, Op, Reasons, Retained, Spec

__all__: list[str] = []


@dataclass(frozen=True)
class Scan(Op):
    """states, y = body(states, x) for each step x of sequences.

    Inputs: `sequences` arrays with the steps along `axis`; the first `states`; what all steps read alike.  Outputs: the
    last states; for each y of the body all steps along `axis`, or with stacked=False that of the last step.

    body: what a step computes (graph/runtime/body.py).  steps: of the loop.
    backwards: the last step of the sequences comes first.  aligned: each y lies where its step of the sequences does;
    else in the order in which steps are made.
    zeros: states of the body, its last ones, that are 0 at first, and no output.
    masked: the first sequence is a mask: where a step of it is 0 everywhere the body does not run; states stay as they
    are.  held: for each y the state that it is in such a step, -1 for zeros.

    A pass of the plan says these (passes/loops.py).  needs: inputs whose gradient is wanted.  training: of the graph.
    again: forward leaves the states of some steps, from which backward runs the steps once more; else what backward
    reads of each step.
    """

    body: Any
    steps: int
    sequences: int
    states: int
    axis: int = 0
    backwards: bool = False
    aligned: bool = True
    stacked: bool = True
    zeros: int = 0
    masked: bool = False
    held: tuple[int, ...] = ()
    needs: tuple[bool, ...] = ()
    training: bool = False
    again: bool = False

    dense: ClassVar[bool] = True
    mixes_dtypes: ClassVar[bool] = True
    replayable: ClassVar[bool] = False  # what it keeps is of the run before
    lacks: ClassVar[Reasons] = {
        "gpu": "a body runs on CPUs: recurrent layers with unroll=True leave their steps in the plan",
        "onnx": "what is exported has the operators of all steps",
    }

    @property
    def plan(self) -> Any:
        """That of the body (graph/runtime/body_plan.py)."""
        return self.body.plan(self.needs, self.training)

    @property
    def given(self) -> int:
        """Inputs before those that all steps read alike."""
        return self.sequences + self.states

    @property
    def draws(self) -> bool:  # type: ignore[override]
        return bool(self.body.draws)

    @property
    def updates(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(self.given + i for i in self.body.updates)

    @property
    def nondifferentiable(self) -> tuple[int, ...]:  # type: ignore[override]
        return (0,) if self.masked else ()

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(self.given, self.given + len(self.body.shared)))

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        body, one = self.body, [self._without_steps(spec) for spec in inputs[: self.sequences]]
        expected = [*body.sequences, *body.states[: self.states], *body.shared]
        got = [*one, *inputs[self.sequences :]]
        if got != expected:
            raise ValueError(f"scan: expected inputs of one step like {expected}, got {got}")
        ys = [Spec(self._with_steps(spec.shape), spec.dtype) if self.stacked else spec for spec in body.results]
        return (*body.states[: self.states], *ys)

    def _without_steps(self, spec: Spec) -> Spec:
        steps = spec.shape[self.axis] if len(spec.shape) > self.axis else None
        if steps != self.steps:
            raise ValueError(f"scan: expected {self.steps} steps along axis {self.axis}, got shape {spec.shape}")
        return Spec((*spec.shape[: self.axis], *spec.shape[self.axis + 1 :]), spec.dtype)

    def _with_steps(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (*shape[: self.axis], self.steps, *shape[self.axis :])

    @property
    def segment(self) -> int:
        """Steps from one to the next whose states are left with `again`: about the root of all."""
        return max(int(self.steps**0.5), 1)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        if not any(self.needs):
            return Retained()
        read = self.plan.read_by_backward | ({0} if self.masked else set())
        first = range(self.sequences, self.given)
        return Retained(x=tuple(i for i in range(len(needs)) if i in read or (self.again and i not in first)))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        if not any(self.needs):
            return {}
        if self.again:
            return {"states": Spec((-(-self.steps // self.segment), self.plan.state_bytes), "uint8")}
        return {"kept": Spec((self.steps, self.plan.kept_bytes), "uint8")}

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        flops, multiplications = self.body.cost(direction)
        return {direction: Cost(self.steps * flops, self.steps * multiplications)} if flops else {}

    def formula(self, *inputs: Any) -> Any:
        return self.body.unrolled(self, inputs)


@dataclass(frozen=True)
class VectorProduct(Op):
    """The sum of all x * v: the end of a body, by which gradients v from outside are pulled back.

    Inputs: x, ..., and as many v, each of its x's shape and dtype.  Output: a scalar.
    """

    dense: ClassVar[bool] = True
    mixes_dtypes: ClassVar[bool] = True
    lacks: ClassVar[Reasons] = {
        "gpu": "bodies of Scan run on CPUs",
        "onnx": "files hold no gradients",
        "gradient": "a Scan is differentiated again by its steps",
    }

    @property
    def nondifferentiable(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1, 64, 2))

    def infer(self, *inputs: Spec) -> Spec:
        pairs = list(zip(inputs[::2], inputs[1::2], strict=True))
        for x, v in pairs:
            if x != v or x.dtype not in FLOATING:
                raise ValueError(f"vectorproduct: expected floats of one shape and dtype, got {x} and {v}")
        return Spec((), real(inputs[0].dtype))

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(range(1, len(needs), 2)))
