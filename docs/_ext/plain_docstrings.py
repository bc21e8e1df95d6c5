"""Docstrings are plain text with `names` in backticks: this turns them into reStructuredText before Sphinx reads them.

A paragraph stays one; a paragraph of "- " items becomes a list; indented lines and tables are shown as they are.
"""

from __future__ import annotations

import re
from typing import Any

_CODE = re.compile(r"`([^`]+)`")
_SPECIAL = re.compile(r"([*|\\])|(?<=\w)_(?=\W|$)")


def _inline(text: str) -> str:
    """Escapes what reStructuredText would take for markup, and makes `x` code, also where it touches letters."""
    pieces = _CODE.split(text)
    result = ""
    for i, piece in enumerate(pieces):
        if i % 2 == 0:
            result += _SPECIAL.sub(lambda match: f"\\{match.group()}", piece)
            continue
        before, after = pieces[i - 1][-1:], pieces[i + 1][:1]
        left = "\\ " if before and not before.isspace() and before not in "([{<-/'\"" else ""
        right = "\\ " if after and (after.isalnum() or after in "([{<_") else ""
        result += f"{left}``{piece.strip()}``{right}"
    return result


def _prose(lines: list[str]) -> list[str]:
    return [_inline(" ".join(line.strip() for line in lines)), ""]


def convert(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    result: list[str] = []
    paragraph: list[str] = []
    kind = "prose"

    def close() -> None:
        nonlocal kind
        if paragraph:
            if kind == "literal":
                result.extend(["::", "", *("    " + line for line in paragraph), ""])
            elif kind == "item":
                result.extend(["- " + _prose(paragraph)[0], ""])
            else:
                result.extend(_prose(paragraph))
        paragraph.clear()
        kind = "prose"

    for line in lines:
        stripped = line.strip()
        if not stripped:
            close()
        elif re.match(r"\s*- ", line):
            close()
            kind = "item"
            paragraph.append(stripped[2:])
        elif kind == "item" and line.startswith(" "):
            paragraph.append(stripped)
        elif line.startswith(("  ", "\t", "|", ">>>")) or kind == "literal":
            if kind != "literal":
                close()
                kind = "literal"
            paragraph.append(line)
        else:
            if kind == "item":
                close()
            paragraph.append(line)
    close()
    return result


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = convert(lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
