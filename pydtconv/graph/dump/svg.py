"""A graph as a picture: one box a node, from top to bottom, edges with the tensors that go along them."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from pydtconv.graph.dump.layered import Drawing
from pydtconv.graph.dump.text import REDUCTIONS, notes, of_node, shape
from pydtconv.graph.ir.graph import Graph, Node, Tensor

WIDTH, HEIGHT, ROW = 176.0, 46.0, 76.0
MARGIN, TITLE = 24.0, 34.0
LETTERS = 32  # that fit in a box

#: colours of the boxes, by the beginning of the operator's name
COLORS = {
    "conv": "#cfe3f5",
    "depthwise": "#cfe3f5",
    "dense": "#cfe3f5",
    "matmul": "#cfe3f5",
    "batchnorm": "#d9efdc",
    "layernorm": "#d9efdc",
    "moments": "#d9efdc",
    "activation": "#fbe5c8",
    "maxpool": "#e6dcf2",
    "avgpool": "#e6dcf2",
    "globalpool": "#e6dcf2",
    "concatenate": "#eeeeee",
    "crossentropy": "#f6d5d0",
    "softmax": "#f6d5d0",
}
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #1f2933; text-anchor: middle; }
.title { font-size: 14px; font-weight: 600; text-anchor: start; }
.op { font-weight: 600; }
.small { font-size: 9px; fill: #52606d; }
rect { stroke: #7b8794; rx: 5px; }
.changed { stroke: #d64545; stroke-width: 2.5; }
.elided { stroke-dasharray: 5 3; }
.end { fill: #ffffff; stroke: #3e4c59; }
path { fill: none; stroke: #9aa5b1; stroke-width: 1.3; }
path.through { stroke: #2f8132; stroke-dasharray: 5 3; }
"""


def graph_svg(graph: Graph, changed: Collection[Node], title: str) -> str:
    """The picture.  changed: nodes with a red border.  Dashed: images that are not materialized."""
    ends = [("result", name) for name in graph.outputs]
    edges = [*_edges(graph), *((_source(tensor), ("result", name)) for name, tensor in graph.outputs.items())]
    items = [*(tensor for tensor in graph.inputs.values()), *graph.nodes, *ends]
    known = {*items}
    edges = [(a, b) for a, b in dict.fromkeys(edges) if a in known]
    drawing = Drawing(items, edges, WIDTH)
    left = min(drawing.centre.values(), default=0.0) - WIDTH / 2 - MARGIN
    right = max(drawing.centre.values(), default=0.0) + WIDTH / 2 + MARGIN
    right = max(right, left + 8.5 * len(title) + 2 * MARGIN)
    row_of = {item: row for row, line in enumerate(drawing.rows) for item in line}
    places = {
        item: (centre - left, TITLE + MARGIN + row_of[item] * ROW + HEIGHT / 2)
        for item, centre in drawing.centre.items()
    }
    height = TITLE + 2 * MARGIN + max(len(drawing.rows), 1) * ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right - left:.0f} {height:.0f}" '
        f'width="{right - left:.0f}" height="{height:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<path style="fill: #ffffff; stroke: none" d="M0 0h{right - left:.0f}v{height:.0f}h-{right - left:.0f}z"/>',
        f'<text class="title" x="{MARGIN:.0f}" y="{TITLE - 8:.0f}">{escape(title)}</text>',
    ]
    for route in drawing.routes:
        lines.append(_edge(graph, route[0], [places[item] for item in route]))
    for item in items:
        lines.append(_box(graph, item, places[item], item in changed))
    return "\n".join([*lines, "</svg>", ""])


def _source(tensor: Tensor) -> object:
    return tensor if tensor.node is None else tensor.node


def _edges(graph: Graph) -> list[tuple[object, object]]:
    """From a node or an input to each node that reads it; parameters and constants have none."""
    return [(_source(tensor), node) for node in graph.nodes for tensor in node.inputs]


def _edge(graph: Graph, source: object, points: list[tuple[float, float]]) -> str:
    """A smooth line from the lower side of a box to the upper side of another."""
    (x, y), half = points[0], HEIGHT / 2
    path = [f"M{x:.1f} {y + half:.1f}"]
    upper = y + half
    for i, (x2, y2) in enumerate(points[1:], 1):
        last = i == len(points) - 1
        top = y2 - half
        middle = (upper + top) / 2
        path.append(f"C{x:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {top:.1f}")
        x, upper = x2, y2 + half
        if not last:
            path.append(f"V{upper:.1f}")
    elided = isinstance(source, Node) and source.outputs[0] in graph.elided
    return f'<path{" class=" + chr(34) + "through" + chr(34) if elided else ""} d="{"".join(path)}"/>'


def _box(graph: Graph, item: object, place: tuple[float, float], changed: bool) -> str:
    x, y = place
    if isinstance(item, Node):
        texts = [_operator(item), shape(item.outputs[0].spec), _tail(item.scope)]
        kind, tip = item.op.name, of_node(graph, item)
        about = "; ".join(notes(graph, item))
        texts[2] = about.replace(REDUCTIONS, "sums") or texts[2]
        classes = [*(["changed"] if changed else []), *(["elided"] if item.outputs[0] in graph.elided else [])]
    elif isinstance(item, Tensor):
        texts, kind, tip, classes = [item.name, shape(item.spec), "input"], "", item.name, ["end"]
    else:
        name = str(item[1])  # type: ignore[index]
        texts, kind, tip, classes = [name, "", "result"], "", name, ["end"]
    color = next((color for word, color in COLORS.items() if kind.startswith(word)), "#f5f7fa")
    fill = "" if "end" in classes else f' fill="{color}"'
    named = f' class="{" ".join(classes)}"' if classes else ""
    corner = f'x="{x - WIDTH / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}"'
    rows = zip(texts, ("op", "", "small"), (-9.0, 4.5, 17.0), strict=True)
    words = "".join(f'<text class="{css}" x="{x:.1f}" y="{y + dy:.1f}">{_short(t)}</text>' for t, css, dy in rows if t)
    return f"<g><title>{escape(tip)}</title><rect {corner}{fill}{named}/>{words}</g>"


def _operator(node: Node) -> str:
    """The operator with what is fused into it: `conv+add, relu`."""
    kind = getattr(node.op, "activation", None)
    return node.op.name if kind in (None, "linear") else f"{node.op.name}, {kind}"


def _tail(text: str) -> str:
    """The end of a name, which tells one layer from another."""
    return text if len(text) <= LETTERS else f"…{text[1 - LETTERS :]}"


def _short(text: str) -> str:
    return escape(text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…")
