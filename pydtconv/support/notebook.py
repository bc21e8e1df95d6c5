"""Tables and pictures of objects in a notebook, as HTML and SVG, which need no packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, MARGIN = 640, 180, 12


def table(rows: Mapping[str, object]) -> str:
    """Two columns: names, and what they stand for."""
    cells = (f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in rows.items())
    return f"<table>{''.join(cells)}</table>"


def details(title: str, text: str) -> str:
    """A text that is shown where somebody asks for it."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def areas(series: Mapping[str, tuple[str, Sequence[float]]], marks: Mapping[str, int] | None = None) -> str:
    """Amounts on top of each other over steps, by name: (color, one for each step).  marks: steps with a line."""
    count = max((len(values) for _, values in series.values()), default=0)
    most = max((sum(step) for step in zip(*(values for _, values in series.values()), strict=True)), default=0) or 1
    low, shapes = [0.0] * count, []
    for name, (color, values) in series.items():
        high = [a + b for a, b in zip(low, values, strict=True)]
        if any(values):
            edge = [*_steps(high, most), *reversed(_steps(low, most))]
            shapes.append(f'<polygon fill="{color}" points="{" ".join(edge)}"><title>{escape(name)}</title></polygon>')
        low = high
    for name, step in (marks or {}).items():
        x = MARGIN + (WIDTH - 2 * MARGIN) * (step + 0.5) / max(count, 1)
        shapes.append(
            f'<path d="M{x:.1f} 0V{HEIGHT}" stroke="#333" stroke-dasharray="4 3"><title>{name}</title></path>'
        )
        anchor = "end" if x > WIDTH / 2 else "start"
        shapes.append(f'<text x="{x:.1f}" y="10" text-anchor="{anchor}" font-size="10">{escape(name)}</text>')
    shown = {name: color for name, (color, values) in series.items() if any(values)}
    return _svg(shapes) + _legend(shown)


def _steps(values: Sequence[float], most: float) -> list[str]:
    """The corners of a line that is level within each step."""
    wide, high = (WIDTH - 2 * MARGIN) / max(len(values), 1), HEIGHT - 2 * MARGIN
    heights = [f"{HEIGHT - MARGIN - high * value / most:.1f}" for value in values]
    return [f"{MARGIN + (i + end) * wide:.1f},{y}" for i, y in enumerate(heights) for end in (0, 1)]


def curves(series: Mapping[str, tuple[str, Sequence[float]]]) -> str:
    """Values over epochs, by name: (color, one for each epoch); those that are not finite are left out."""
    known = {
        name: [(i, v) for i, v in enumerate(values) if abs(v) < float("inf")] for name, (_, values) in series.items()
    }
    every = [value for points in known.values() for _, value in points] or [0.0]
    span, last = max(every) - min(every) or 1.0, max((len(values) for _, values in series.values()), default=1) - 1
    shapes = []
    for name, points in known.items():
        places = (
            (MARGIN + (WIDTH - 2 * MARGIN) * i / max(last, 1), MARGIN + (HEIGHT - 2 * MARGIN) * (max(every) - v) / span)
            for i, v in points
        )
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        shapes.append(
            f'<polyline fill="none" stroke="{series[name][0]}" stroke-width="2" points="{line}"><title>{escape(name)}'
            "</title></polyline>"
        )
    return _svg(shapes) + _legend({name: color for name, (color, _) in series.items()})


def _svg(shapes: Iterable[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" style="max-width:{WIDTH}px;width:100%;background:#fff"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{"".join(shapes)}</svg>'


def _legend(colors: Mapping[str, str]) -> str:
    marks = (f"<span style='color:{color}'>&#9632;</span> {escape(name)}" for name, color in colors.items())
    return f"<div>{' &nbsp; '.join(marks)}</div>"
