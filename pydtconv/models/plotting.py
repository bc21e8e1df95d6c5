"""Pictures of models: their layers and calls in Graphviz's language, drawn by Graphviz where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydtconv import tree
from pydtconv.files.whole_file import write_whole
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import Node
from pydtconv.support.messages import tell


class Dot:
    """A picture in Graphviz's language, as far as `pydot.Dot` is needed: `to_string`, `write`."""

    def __init__(self, text: str) -> None:
        self._text = text

    def to_string(self) -> str:
        """The text."""
        return self._text

    def write(self, path: str | Path, prog: str = "dot", format: str = "raw") -> bool:
        """Writes the text ("raw"), or what the program `prog` of Graphviz draws of it ("png", "svg", "pdf", ...).

        Raises ImportError where the program is not installed.
        """
        if format in ("raw", "dot"):
            write_whole(Path(path), lambda file: file.write(self._text.encode()))
            return True
        program = shutil.which(prog)
        if program is None:
            raise ImportError(
                f"plot_model: a picture of format {format!r} needs Graphviz, whose program {prog!r} is not installed: "
                "expected to_file to end in '.dot', which needs nothing"
            )
        subprocess.run([program, f"-T{format}", "-o", str(path)], input=self._text, text=True, check=True)
        return True


def plot_model(
    model: Any,
    to_file: str | Path = "model.png",
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = False,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
    **kwargs: Any,
) -> None:
    """Writes a picture of a model: ".png", ".svg", ".pdf", or ".dot", for which Graphviz need not be installed.

    Arguments as `model_to_dot`.  Where Graphviz is needed and missing it prints so, as Keras does, and writes nothing.
    """
    shown = (show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi, False)
    dot = model_to_dot(model, *shown, show_layer_activations, show_trainable, splines, **kwargs)
    path = Path(to_file)
    try:
        dot.write(path, format=path.suffix.lstrip(".").lower() or "png")
    except ImportError as error:
        tell(str(error))


def model_to_dot(
    model: Any,
    show_shapes: bool = False,
    show_dtype: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 200,
    subgraph: bool = False,
    show_layer_activations: bool = False,
    show_trainable: bool = False,
    splines: str = "ortho",
    **kwargs: Any,
) -> Dot:
    """A model in Graphviz's language: a box for each layer, an arrow for each tensor between two.

    show_*: what stands in the boxes beside the class.  rankdir: "TB" from top to bottom, "LR" from left to right.
    expand_nested: models inside as frames with their layers.  Raises ValueError for a model that is not built.
    """
    if kwargs:
        raise TypeError(f"model_to_dot: unknown argument {next(iter(kwargs))!r}")
    if subgraph:
        raise NotImplementedError("model_to_dot: expected subgraph=False: frames are drawn with expand_nested=True")
    if not getattr(model, "built", False):
        raise ValueError(f"model_to_dot: the model {model.name!r} is not built yet: call it on data first")
    show = {
        "names": show_layer_names, "shapes": show_shapes, "dtype": show_dtype, "activations": show_layer_activations,
        "trainable": show_trainable, "nested": expand_nested,
    }  # fmt: skip
    head = [f'  graph [rankdir="{rankdir}", dpi={int(dpi)}, splines="{splines}"];', "  node [shape=box];"]
    body = [f"  {line}" for line in _lines(model, show, "")]
    return Dot("\n".join(["digraph model {", *head, *body, "}", ""]))


def _lines(model: Any, show: dict[str, bool], prefix: str) -> Iterator[str]:
    """Boxes and arrows of a model; prefix: of the names of its boxes."""
    network = getattr(model, "_pydt_network", None)
    if network is None:  # a subclass: its layers, without arrows
        yield from (_box(layer, None, show, f"{prefix}{i}") for i, layer in enumerate(model.layers))
        return
    for operation in network.operations:
        name, nodes = f"{prefix}{operation.name}", [n for n in operation._pydt_inbound_nodes if n in network.nodes]
        if show["nested"] and getattr(operation, "_pydt_network", None) is not None:
            yield f'subgraph "cluster_{name}" {{ label="{_escaped(operation.name)}";'
            yield from _lines(operation, show, f"{name}/")
            yield "}"
        else:
            yield _box(operation, nodes[0] if nodes else None, show, name)
    for node in network.nodes:
        for tensor in node.input_tensors:
            if tensor.node in network.nodes:
                source = _end(tensor.node.operation, prefix, show, -1)
                yield f'"{source}" -> "{_end(node.operation, prefix, show, 0)}";'


def _end(operation: Any, prefix: str, show: dict[str, bool], side: int) -> str:
    """The box at which an arrow to (side 0) or from (-1) an operation ends: of a frame its first or last one."""
    name = f"{prefix}{operation.name}"
    network = getattr(operation, "_pydt_network", None)
    if not show["nested"] or network is None:
        return name
    ends = network.flat_inputs if side == 0 else network.flat_outputs
    return _end(ends[side].node.operation, f"{name}/", show, side)


def _box(operation: Any, node: Node | None, show: dict[str, bool], name: str) -> str:
    kind = type(operation).__name__ if isinstance(operation, Layer) else operation.name
    rows = [f"{operation.name} ({kind})" if show["names"] else kind]
    activation = getattr(operation, "activation", None)
    if show["activations"] and activation is not None:
        rows.append(f"activation: {getattr(activation, '__name__', activation)}")
    if node is not None and (show["shapes"] or show["dtype"]):
        for what, tensors in (("input", node.input_tensors), ("output", tree.flatten(node.outputs))):
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors) if show["shapes"] else ""
            dtypes = ", ".join(str(tensor.dtype) for tensor in tensors) if show["dtype"] else ""
            if tensors:
                rows.append(f"{what}: {' '.join(part for part in (shapes, dtypes) if part)}")
    if show["trainable"] and isinstance(operation, Layer) and operation.weights:
        rows.append("trainable" if operation.trainable else "non-trainable")
    text = "\\n".join(map(_escaped, rows))
    return f'"{_escaped(name)}" [label="{text}"];'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
