"""`Network`: the recorded calls between symbolic inputs and outputs, in an order in which they can be replayed.

The order of the layers is Keras's: by decreasing distance from the outputs, and within one distance in the order in
which a depth-first walk from the outputs meets them.  Weights, summaries and files follow it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from pydtconv import tree
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor, Node, Operation


class Network:
    """inputs, outputs: structures of symbolic tensors; operations: layers and ops; nodes: their calls, as they run."""

    def __init__(self, inputs: Any, outputs: Any) -> None:
        for kind, structure in (("inputs", inputs), ("outputs", outputs)):
            for leaf in tree.flatten(structure):
                if not isinstance(leaf, KerasTensor):
                    raise ValueError(
                        f"Model: {kind}: expected symbolic tensors, such as Input(...) gives, got {leaf!r}"
                    )
        self.inputs = inputs
        self.outputs = outputs
        self.flat_inputs: list[KerasTensor] = tree.flatten(inputs)
        self.flat_outputs: list[KerasTensor] = tree.flatten(outputs)
        order, self._met = self._walk()
        self.nodes, self.operations = self._sort(order)
        self._check_names()
        #: layers whose outputs are as long as the strings of an input have words, and the place of that
        self.readers = [
            (place, node.operation)
            for node in self.nodes
            for place, tensor in enumerate(self.flat_inputs)
            if hasattr(node.operation, "note_longest") and node.input_tensors == [tensor]
        ]

    @property
    def layers(self) -> list[Layer]:
        return [operation for operation in self.operations if isinstance(operation, Layer)]

    def _walk(self) -> tuple[list[Node], dict[Operation, int]]:
        """The nodes on the way from inputs to outputs, producers first, and when each operation was met.

        Iterative, since deep networks are deeper than Python's stack.
        """
        given = set(self.flat_inputs)
        done: set[Node] = set()
        order: list[Node] = []
        met: dict[Operation, int] = {}
        for output in self.flat_outputs:
            stack: list[tuple[KerasTensor, bool]] = [(output, False)]
            while stack:
                tensor, parents_done = stack.pop()
                if tensor._keras_history is None:
                    raise ValueError(f"Model: {tensor} was made by no layer; the inputs are {self.flat_inputs}")
                node = tensor.node
                if parents_done:
                    if node not in done:
                        done.add(node)
                        order.append(node)
                    continue
                if node in done or (tensor in given and not node.is_input):
                    continue
                if node.is_input and tensor not in given:
                    raise ValueError(
                        f"Model: the outputs depend on the input {tensor.name!r}, which is not among the inputs "
                        f"{[x.name for x in self.flat_inputs]}"
                    )
                met.setdefault(tensor._keras_history.operation, len(met))
                stack.append((tensor, True))
                stack.extend((parent, False) for parent in reversed(node.input_tensors))
        return order, met

    def _sort(self, order: list[Node]) -> tuple[list[Node], list[Operation]]:
        inside = set(order)
        node_depth: dict[Node, int] = {}
        depth: dict[Operation, int] = {}
        for node in reversed(order):
            d = max(node_depth.get(node, 0), depth.get(node.operation, 0))
            depth[node.operation] = node_depth[node] = d
            for parent in node.parent_nodes:
                if parent in inside:
                    node_depth[parent] = max(d + 1, node_depth.get(parent, 0))
        for tensor in self.flat_inputs:
            # an input that no output depends on belongs to the model all the same
            if tensor.node.is_input and tensor.node not in node_depth:
                depth[tensor.node.operation] = node_depth[tensor.node] = 0
                self._met[tensor.node.operation] = -1
        by_depth: dict[int, list[Operation]] = defaultdict(list)
        for operation, d in depth.items():
            by_depth[d].append(operation)
        operations = [
            operation
            for d in sorted(by_depth, reverse=True)
            for operation in sorted(by_depth[d], key=self._met.__getitem__)
        ]
        return [*(node for node in node_depth if node not in inside), *order], operations

    def _check_names(self) -> None:
        seen: dict[str, Operation] = {}
        for operation in self.operations:
            other = seen.setdefault(operation.name, operation)
            if other is not operation:
                raise ValueError(
                    f"Model: two layers are named {operation.name!r}, {other!r} and {operation!r}: names must differ"
                )

    def is_sequential(self) -> bool:
        """Whether the nodes form one chain without branches or shared layers."""
        operations = [node.operation for node in self.nodes]
        return (
            len(set(operations)) == len(operations)
            and all(len(node.input_tensors) <= 1 for node in self.nodes)
            and len(self.flat_inputs) == len(self.flat_outputs) == 1
            and len({tensor for node in self.nodes for tensor in node.input_tensors})
            == sum(len(node.input_tensors) for node in self.nodes)
        )

    def replay(self, inputs: list[Any], training: bool | None = None) -> Any:
        """The outputs (in their structure) for tensors in place of the flat inputs."""
        values: dict[KerasTensor, Any] = dict(zip(self.flat_inputs, inputs, strict=True))

        def value_of(leaf: Any) -> Any:
            return values[leaf] if isinstance(leaf, KerasTensor) else leaf

        for node in self.nodes:
            if all(tensor in values for tensor in node.output_tensors):
                continue
            args, kwargs = tree.map_structure(value_of, (node.args, node.kwargs))
            if isinstance(node.operation, Layer) and training is not None and kwargs.get("training") is None:
                kwargs["training"] = training
            outputs = node.operation(*args, **kwargs)
            for tensor, value in zip(node.output_tensors, tree.flatten(outputs), strict=True):
                values[tensor] = value
        return tree.map_structure(value_of, self.outputs)


def cut_at(inputs: Any, outputs: Any) -> tuple[Any, Any]:
    """The calls between inputs and outputs again, from new Input tensors where an input is a layer's output."""
    from pydtconv.layers.input_layer import Input

    network = Network(inputs, outputs)
    fresh = {
        x: Input(batch_shape=x.shape, dtype=x.dtype, name=x.name) for x in network.flat_inputs if not x.node.is_input
    }
    new_inputs = tree.map_structure(lambda x: fresh.get(x, x), inputs)
    return new_inputs, network.replay([fresh.get(x, x) for x in network.flat_inputs])
