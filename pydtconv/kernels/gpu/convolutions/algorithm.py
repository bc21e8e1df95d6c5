"""What an algorithm of convolution is on a device."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

from pydtconv.conv.problem import ConvProblem
from pydtconv.kernels.base import Call

#: operations that a GPU does in the time in which it moves a byte: what is ranked by before it is timed
FLOPS_PER_BYTE = 10.0

#: spectra by name that a pass leaves for others, or that others have left for it
Kept = Mapping[str, Any] | None


class Work(NamedTuple):
    """What a pass does: operations, and bytes that it moves."""

    flops: float
    nbytes: float

    @property
    def cost(self) -> float:
        """For comparisons: bytes, and operations as bytes that would be moved meanwhile."""
        return self.nbytes + self.flops / FLOPS_PER_BYTE


class Algorithm(Protocol):
    """Binds the passes of a convolution; arrays are those of the device, images may be slices of channels."""

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        """Why it does not serve a pass of a problem; None where it does."""

    def others(self, p: ConvProblem, direction: str, count: int) -> list[str]:
        """Names of it with strategies of its own, as many as asked for; none where it has no choice."""

    def workspace(self, p: ConvProblem, direction: str, kept: Collection[str] = ()) -> int:
        """Bytes of workspace of a pass; kept: names of spectra that lie elsewhere."""

    def work(self, p: ConvProblem, direction: str) -> Work:
        """What a pass does and moves."""

    def forward(
        self, launcher: Any, p: ConvProblem, x: Any, w: Any, y: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        """y (+)= x * w."""

    def backward_data(
        self, launcher: Any, p: ConvProblem, dy: Any, w: Any, dx: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        """dx (+)= the gradient of x."""

    def backward_weights(
        self, launcher: Any, p: ConvProblem, x: Any, dy: Any, dw: Any, workspace: Any, kept: Kept = None
    ) -> Call:
        """dw = the gradient of w."""
