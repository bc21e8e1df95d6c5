"""The table that `model.summary()` prints: layers, output shapes, numbers of parameters, and where inputs come from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.input_layer import InputLayer
from pydtconv.support.messages import tell


def print_summary(
    model: Any,
    line_length: int | None = None,
    positions: Sequence[float] | None = None,
    print_fn: Callable[[str], Any] | None = None,
    expand_nested: bool = False,
    show_trainable: bool = False,
    layer_range: Sequence[str] | None = None,
) -> None:
    """Prints the table, or gives it to print_fn as one text.

    line_length: width of the table; positions: where its columns end, as parts of the width; layer_range: the names (or
    regular expressions) of the first and the last layer to show.
    """
    text = "\n".join(_lines(model, line_length, positions, expand_nested, show_trainable, layer_range))
    (print_fn or tell)(text)


def _lines(
    model: Any,
    line_length: int | None,
    positions: Sequence[float] | None,
    expand_nested: bool,
    show_trainable: bool,
    layer_range: Sequence[str] | None,
) -> list[str]:
    network = model._pydt_network
    connected = network is not None and not network.is_sequential()
    header = ["Layer (type)", "Output Shape", "Param #"]
    ends = list(positions) if positions else [0.45, 0.80, 1.0]
    default = 88
    if connected:
        header.append("Connected to")
        ends = list(positions) if positions else [0.3, 0.56, 0.74, 1.0]
        default = 108
    if show_trainable:
        header.append("Trainable")
        ends = [end * 0.9 for end in ends] + [1.0]
        default += 12
    if len(ends) != len(header):
        raise ValueError(f"summary: positions: expected {len(header)} numbers, got {positions!r}")
    length = line_length or min(default, shutil.get_terminal_size((default + 4, 24)).columns - 4)
    stops = [0, *(int(end * length) for end in ends)]
    widths = [max(stops[i + 1] - stops[i] - 3, 1) for i in range(len(header))]
    if min(stops[i + 1] - stops[i] for i in range(len(header))) < 4:
        raise ValueError(f"summary: line_length={length} is too small for {len(header)} columns")

    layers = model.operations if connected else _shown(model)
    low, high = _range(layers, layer_range)
    inside = set(network.nodes) if network is not None else set()
    rows: list[list[str]] = []
    for layer in layers[low:high]:
        _add_rows(rows, layer, 0, connected, show_trainable, expand_nested, inside)
    lines = [f'Model: "{model.name}"']
    lines.extend(_table(header, rows, widths))
    lines.extend(_totals(model))
    return lines


def _shown(model: Any) -> list[Any]:
    return [x for x in model.operations if not (isinstance(x, InputLayer) and type(model).__name__ == "Sequential")]


def _add_rows(
    rows: list[list[str]], layer: Any, level: int, connected: bool, show_trainable: bool, expand: bool, inside: set[Any]
) -> None:
    prefix = "   " * level + "└ " if level else ""
    row = [f"{prefix}{layer.name} ({layer._pydt_kind})", _output_shape(layer), _params(layer)]
    if connected:
        row.append(_connections(layer, inside))
    if show_trainable:
        row.append(("Y" if layer.trainable else "N") if getattr(layer, "weights", None) else "-")
    rows.append(row)
    if expand:
        for inner in getattr(layer, "layers", ()):
            _add_rows(rows, inner, level + 1, connected, show_trainable, expand, inside)


def _params(layer: Any) -> str:
    if not isinstance(layer, Layer):
        return "0"
    return f"{layer.count_params():,}" if layer.built else "0 (unbuilt)"


def _output_shape(layer: Any) -> str:
    if layer._pydt_inbound_nodes:
        shapes = [tensor.shape for tensor in layer._pydt_inbound_nodes[-1].output_tensors]
    elif getattr(layer, "_pydt_network", None) is not None:
        shapes = [tensor.shape for tensor in layer.outputs]
    elif layer.built and layer._pydt_build_shapes is not None:
        try:
            shapes = _flat_shapes(layer.compute_output_shape(layer._pydt_build_shapes))
        except (NotImplementedError, TypeError, ValueError):
            return "?"
    else:
        return "?"
    return ", ".join(f"({', '.join(map(str, shape))})" if len(shape) != 1 else f"({shape[0]},)" for shape in shapes)


def _flat_shapes(structure: Any) -> list[tuple[int | None, ...]]:
    found: list[tuple[int | None, ...]] = []
    tree.map_shape_structure(found.append, structure)
    return found


def _connections(layer: Any, inside: set[Any]) -> str:
    sources = [
        f"{history.operation.name}[{history.node_index}][{history.tensor_index}]"
        for node in layer._pydt_inbound_nodes
        if node in inside
        for history in (tensor._keras_history for tensor in node.input_tensors)
        if history is not None
    ]
    return ", ".join(sources) or "-"


def _range(layers: list[Any], layer_range: Sequence[str] | None) -> tuple[int, int]:
    if layer_range is None:
        return 0, len(layers)
    if len(layer_range) != 2 or not all(isinstance(name, str) for name in layer_range):
        raise ValueError(f"summary: layer_range: expected two names, got {layer_range!r}")
    first, last = ([i for i, layer in enumerate(layers) if re.match(name, layer.name)] for name in layer_range)
    if not first or not last:
        raise ValueError(f"summary: layer_range: no layers match {layer_range!r}")
    if min(first) > max(last):
        return min(last), max(first) + 1
    return min(first), max(last) + 1


def _table(header: list[str], rows: list[list[str]], widths: list[int]) -> list[str]:
    def rule(left: str, line: str, middle: str, right: str) -> str:
        return left + middle.join(line * (width + 2) for width in widths) + right

    def row_lines(row: list[str], bar: str) -> list[str]:
        cells = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        lines = []
        for i in range(max(map(len, cells))):
            texts = [cell[i] if i < len(cell) else "" for cell in cells]
            padded = [
                text.rjust(width) if column == 2 else text.ljust(width)
                for column, (text, width) in enumerate(zip(texts, widths, strict=True))
            ]
            lines.append(bar + bar.join(f" {text} " for text in padded) + bar)
        return lines

    lines = [rule("┏", "━", "┳", "┓"), *row_lines(header, "┃"), rule("┡", "━", "╇", "┩")]
    for index, row in enumerate(rows):
        if index:
            lines.append(rule("├", "─", "┼", "┤"))
        lines.extend(row_lines(row, "│"))
    lines.append(rule("└", "─", "┴", "┘"))
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """text in lines of at most width: broken at blanks, and inside words that are longer."""
    lines: list[str] = []
    line = text[: len(text) - len(text.lstrip())]
    for word in text.split():
        candidate = f"{line} {word}" if line.strip() else line + word
        if len(candidate) <= width:
            line = candidate
            continue
        if line.strip():
            lines.append(line)
        while len(word) > width:
            lines.append(word[:width])
            word = word[width:]
        line = word
    return [*lines, line]


def _totals(model: Any) -> list[str]:
    groups = {
        "Trainable params": [v.value for v in model.trainable_weights],
        "Non-trainable params": [v.value for v in model.non_trainable_weights],
    }
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and getattr(optimizer, "built", False):
        groups["Optimizer params"] = [np.asarray(getattr(v, "value", v)) for v in optimizer.variables]
    every = [array for arrays in groups.values() for array in arrays]
    lines = []
    for name, arrays in {"Total params": every, **groups}.items():
        lines.append(f" {name}: {sum(a.size for a in arrays):,} ({readable_bytes(sum(a.nbytes for a in arrays))})")
    return lines


def readable_bytes(nbytes: float) -> str:
    """1536 -> "1.50 KB"."""
    for unit in ("B", "KB", "MB", "GB"):
        if nbytes < 1024:
            return f"{nbytes:.2f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.2f} TB"
