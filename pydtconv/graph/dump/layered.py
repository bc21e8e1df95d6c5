"""Where the boxes of a drawn graph go: rows from top to bottom, branches side by side, few crossings.

After Sugiyama, Tagawa and Toda (1981): each item is put in the row below its last predecessor; an edge over several
rows gets a narrow place in each of them; rows are ordered by the mean place of what they are joined to; then items move
to that mean as far as their neighbours allow.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

SWEEPS = 6
GAP = 18.0

Item = Hashable


class Drawing:
    """Rows of items with centres.  After construction: `rows`, `centre` of each item, `routes` of the edges.

    items: each after its predecessors.  edges: (from, to).  width: of an item.  bend: of a bend of an edge.
    """

    def __init__(
        self, items: Sequence[Item], edges: Sequence[tuple[Item, Item]], width: float = 100.0, bend: float = 6.0
    ) -> None:
        self.row_of: dict[Item, int] = dict.fromkeys(items, 0)
        self._widths = dict.fromkeys(items, width)
        self._put_in_rows(items, edges)
        count = 1 + max(self.row_of.values(), default=-1)
        self.rows: list[list[Item]] = [[] for _ in range(count)]
        for item in items:
            self.rows[self.row_of[item]].append(item)
        self._above: dict[Item, list[Item]] = {item: [] for item in items}
        self._below: dict[Item, list[Item]] = {item: [] for item in items}
        self.routes: list[tuple[Item, ...]] = [self._route(a, b, number, bend) for number, (a, b) in enumerate(edges)]
        self._order()
        self.centre: dict[Item, float] = {}
        self._place()

    def _put_in_rows(self, items: Sequence[Item], edges: Sequence[tuple[Item, Item]]) -> None:
        before: dict[Item, list[Item]] = {item: [] for item in items}
        below: dict[Item, list[Item]] = {item: [] for item in items}
        for a, b in edges:
            before[b].append(a)
            below[a].append(b)
        for item in items:
            self.row_of[item] = 1 + max((self.row_of[other] for other in before[item]), default=-1)
        for item in items:
            if not before[item] and below[item]:  # as late as it is needed
                self.row_of[item] = min(self.row_of[other] for other in below[item]) - 1

    def _route(self, a: Item, b: Item, number: int, bend: float) -> tuple[Item, ...]:
        """The items from a to b, with a bend in each row between them."""
        route = [a]
        for row in range(self.row_of[a] + 1, self.row_of[b]):
            item = ("bend", number, row)
            self.rows[row].append(item)
            self._widths[item] = bend
            route.append(item)
        route.append(b)
        for upper, lower in itertools.pairwise(route):
            self._below.setdefault(upper, []).append(lower)
            self._above.setdefault(lower, []).append(upper)
        return tuple(route)

    def _order(self) -> None:
        place = {item: float(i) for row in self.rows for i, item in enumerate(row)}
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            joined = self._above if down else self._below
            for row in self.rows if down else reversed(self.rows):
                row.sort(key=lambda item: _mean([place[other] for other in joined.get(item, ())], place[item]))
                place.update((item, float(i)) for i, item in enumerate(row))

    def _place(self) -> None:
        for row in self.rows:
            self._move(row, [0.0] * len(row))
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                wanted = []
                for item in row:
                    joined = (self._above if down else self._below).get(item, ())
                    wanted.append(_mean([self.centre[other] for other in joined], self.centre[item]))
                self._move(row, wanted)

    def _move(self, row: Sequence[Item], wanted: Sequence[float]) -> None:
        """Puts a row's items as near to where they are wanted as their order and widths allow (least squares)."""
        shift, total = [0.0], 0.0
        for left, right in itertools.pairwise(row):
            total += (self._widths[left] + self._widths[right]) / 2 + GAP
            shift.append(total)
        groups: list[tuple[float, int]] = []  # (mean of wanted - shift, number of items), increasing
        for want, by in zip(wanted, shift[: len(row)], strict=True):
            mean, size = want - by, 1
            while groups and groups[-1][0] > mean:
                other, more = groups.pop()
                mean, size = (mean * size + other * more) / (size + more), size + more
            groups.append((mean, size))
        positions = [mean for mean, size in groups for _ in range(size)]
        for item, position, by in zip(row, positions, shift[: len(row)], strict=True):
            self.centre[item] = position + by


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
