"""Random changes of images that follow each other -> one operator, which is one pass over the images.

Transforms that follow each other become one resampling: what each puts outside of the image is as before, and there is
one interpolation instead of several.  Numbers are drawn as if the operators were still apart.
"""

from __future__ import annotations

import dataclasses

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer
from pydtconv.ops.augment import Augment, Further


def join_augmentations(graph: Graph) -> None:
    """Augment + Augment, where both are lists of steps -> the first with what follows it in `then`."""
    drawing = [node for node in graph.nodes if node.op.draws]
    streams = {node: index if node.stream is None else node.stream for index, node in enumerate(drawing)}
    readers = consumers(graph)
    for node in drawing:
        while isinstance(node.op, Augment) and node.op.by_steps and node in graph.nodes:
            following = sole_consumer(graph, node, readers)
            if following is None or not isinstance(following.op, Augment) or not following.op.by_steps:
                break
            further = Further(following.op.kind, following.op.settings, following.op.seed, streams[following])
            then = (*node.op.then, further, *following.op.then)
            absorb(graph, node, following, dataclasses.replace(node.op, then=then), node.inputs)
            for each in drawing:
                each.stream = streams[each]
