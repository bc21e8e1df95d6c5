"""Dumps: the graph after each pass, the schedule and the memory of a plan, as text and pictures in a folder."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from pydtconv.files.whole_file import write_alone
from pydtconv.graph.dump import text
from pydtconv.graph.dump.svg import graph_svg
from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.memory.plot import Placed


class Dump:
    """Writes `00-traced.txt` and `.svg`, the same under the number and name of each pass, then schedule and memory."""

    def __init__(self, folder: Path, graph: Graph) -> None:
        self.folder = folder
        self.graph = graph
        self._last = 0

    def graph_after(self, place: int, name: str, changed: Collection[Node]) -> None:
        """Writes the graph as it is; the picture marks the nodes that have changed."""
        self._last = max(self._last, place)
        title = f"{name}: {len(self.graph.nodes)} nodes"
        self._write(f"{place:02}-{name}.txt", text.of_graph(self.graph))
        self._write(f"{place:02}-{name}.svg", graph_svg(self.graph, changed, title))

    def stages(self, plan: Placed) -> None:
        """Writes what the stages behind the passes have made."""
        self._write(f"{self._last + 1:02}-schedule.txt", text.of_schedule(plan))
        self._write(f"{self._last + 2:02}-memory.txt", text.of_memory(plan))

    def _write(self, name: str, content: str) -> None:
        write_alone(self.folder / name, lambda file: file.write(content.encode()))


def open_dump(folder: str | Path | None, graph: Graph) -> Dump | None:
    """A dump into this folder, else into a new one in that of PYDTCONV_DUMP, else None.

    Raises ValueError where the folder is a file.
    """
    named = os.environ.get("PYDTCONV_DUMP", "").strip()
    if folder is None and not named:
        return None
    path = Path(folder if folder is not None else named)
    if path.exists() and not path.is_dir():
        raise ValueError(f"dump: expected a folder, got the file {path}")
    path.mkdir(parents=True, exist_ok=True)
    return Dump(path if folder is not None else _new_folder(path, graph), graph)


def _new_folder(parent: Path, graph: Graph) -> Path:
    """The first free one of `001-training`, `002-inference`, ...; several processes may look for theirs at a time."""
    kind = "training" if graph.loss is not None and graph.training else "inference"
    number = len(list(parent.iterdir()))
    while True:
        number += 1
        path = parent / f"{number:03}-{kind}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
