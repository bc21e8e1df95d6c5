"""The kernels of a graph: looked up before anything else is planned, so that a missing one is an error then."""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, joins_channels
from pydtconv.kernels.registry import MissingKernelError


def find_kernels(graph: Graph) -> None:
    """Looks up the kernel of every node that has passes.  Raises MissingKernelError naming the node."""
    for node in graph.nodes:
        if not node.op.is_view and not joins_channels(node):
            try:
                node.kernel  # noqa: B018  (kept by the node)
            except MissingKernelError as error:
                raise MissingKernelError(f"{node.name}: {error}") from None
