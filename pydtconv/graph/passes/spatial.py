"""Images that are cut over the processes of a mesh: the graph of one process -> that of one among several."""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.spatial.cutting import CannotCutError, Cutting
from pydtconv.graph.spatial.rules import cut_node


def cut_images(graph: Graph) -> None:
    """Makes the graph that of `graph.partition`'s process; `graph.placements` says where its ends lie in the whole.

    Raises CannotCutError for an operator that cannot run on a part of an image, and for an axis of the mesh along which
    no image is long enough.
    """
    cutting = Cutting(graph)
    for node in graph.nodes:
        cut_node(cutting, node)
    cutting.finish()
    used = {cut.mesh for layout in cutting.layouts.values() for cut in layout if cut is not None}
    for name in cutting.partition.cut:
        if name not in used and not graph.whole_results:
            raise CannotCutError(
                f"mesh: expected images with an axis {name!r} of at least {cutting.partition.extent(name)} elements, "
                f"got none in this model: {_inputs(graph)}"
            )


def _inputs(graph: Graph) -> str:
    return ", ".join(
        f"{name} of shape {placed.shape}" for name, placed in graph.placements.items() if name in graph.inputs
    )
