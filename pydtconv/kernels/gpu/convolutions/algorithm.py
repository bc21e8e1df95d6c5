"""What an algorithm of convolution is on a device."""

from __future__ import annotations

from typing import Any, Protocol

from pydtconv.conv.problem import ConvProblem
from pydtconv.kernels.base import Call


class Algorithm(Protocol):
    """Binds the passes of a convolution; arrays are those of the device, images may be slices of channels."""

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        """Why it does not serve a pass of a problem; None where it does."""

    def workspace(self, p: ConvProblem, direction: str) -> int:
        """Bytes of workspace of a pass."""

    def forward(self, launcher: Any, p: ConvProblem, x: Any, w: Any, y: Any, workspace: Any, adds: bool) -> Call:
        """y (+)= x * w."""

    def backward_data(
        self, launcher: Any, p: ConvProblem, dy: Any, w: Any, dx: Any, workspace: Any, adds: bool
    ) -> Call:
        """dx (+)= the gradient of x."""

    def backward_weights(self, launcher: Any, p: ConvProblem, x: Any, dy: Any, dw: Any, workspace: Any) -> Call:
        """dw = the gradient of w."""
