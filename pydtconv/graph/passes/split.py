"""`Split`: how the first part of a network is split into patches.  See patch_borders.py and patches.py."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydtconv import tree
from pydtconv.graph.ir.graph import Graph, Node, replay_flops
from pydtconv.graph.passes.patch_layout import AXES, CONVOLUTIONS, Layout, Region, images_of
from pydtconv.graph.passes.patches import patched
from pydtconv.ops.base import Spec
from pydtconv.ops.resize import Pad

#: schemes that a step of stochastic splitting draws from: each is a plan of its own
DRAWS = 8
#: steps after which the oldest of them is replaced by a new one
RENEWED = 32
#: what statistics of batch normalization can be of
STATISTICS = ("patch", "image")


@dataclass(frozen=True)
class Split:
    """The first part of a network in patches.

    depth: the share of the convolutions that are split, from 0 to 1.  splits: patches along rows and columns.
    stochastic: by which share of a patch its borders are drawn anew in each step, from 0 (never) to below 0.5.
    exact: patches also read what of their neighbours they need, and compute it again: the network stays as it is.
    statistics: of what batch normalization takes its statistics: "patch", each by itself, or "image", all patches,
    which are put together for it: the same statistics as without patches, for more memory.
    """

    depth: float = 0.5
    splits: tuple[int, int] = (2, 2)
    stochastic: float = 0.0
    exact: bool = False
    statistics: str = "patch"

    def __post_init__(self) -> None:
        if isinstance(self.depth, bool) or not isinstance(self.depth, (int, float)) or not 0 <= self.depth <= 1:
            raise ValueError(f"Split: depth: expected a share of the convolutions from 0 to 1, got {self.depth!r}")
        counts = tuple(self.splits) if isinstance(self.splits, Sequence) else (self.splits,)
        if len(counts) != 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in counts):
            raise ValueError(f"Split: splits: expected two integers of 1 or more, got {self.splits!r}")
        object.__setattr__(self, "splits", counts)
        if isinstance(self.stochastic, bool) or not 0 <= self.stochastic < 0.5:
            raise ValueError(f"Split: stochastic: expected a share from 0 to below 0.5, got {self.stochastic!r}")
        if self.exact and self.stochastic:
            raise ValueError("Split: exact patches give what the whole network gives: expected stochastic=0 with them")
        if self.statistics not in STATISTICS:
            raise ValueError(f"Split: statistics: expected one of {list(STATISTICS)}, got {self.statistics!r}")

    @classmethod
    def of(cls, value: Any) -> Split | None:
        """A Split, its settings as a mapping, or its text "DEPTH:ROWSxCOLUMNS", as in "0.5:2x2".

        The text may go on with ":0.2", the stochastic share, or ":exact", and with ":image", the statistics.

        Raises ValueError for anything else; None of None.
        """
        if value is None or isinstance(value, Split):
            return value
        if isinstance(value, Mapping):
            return cls(**value)
        wanted = 'split: expected a Split or a text such as "0.5:2x2:0.2" or "0.5:2x2:exact:image"'
        try:
            depth, patches, *rest = value.split(":")
            rows, columns = patches.split("x")
            statistics = rest.pop() if rest and rest[-1] in STATISTICS else STATISTICS[0]
            exact = rest == ["exact"]
            stochastic = float(rest[0]) if rest and not exact else 0.0
            if len(rest) > 1:
                raise ValueError
            settings = (float(depth), (int(rows), int(columns)), stochastic, exact, statistics)
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"{wanted}, got {value!r}") from None
        return cls(*settings)

    @property
    def patches(self) -> int:
        return self.splits[0] * self.splits[1]

    @property
    def whole_statistics(self) -> bool:
        return self.statistics == "image"

    def draws(self, step: int) -> range:
        """The numbers of the schemes that a step draws from; none where there is only one scheme."""
        first = step // RENEWED
        return range(first, first + DRAWS) if self.stochastic and self.patches > 1 else range(0)

    def draw(self, seed: int, step: int, renewed: bool = True) -> int | None:
        """The number of the scheme that a step uses; None where there is only one.  renewed: else of the first ones."""
        found = self.draws(step if renewed else 0)
        return random.Random(f"{seed} {step}").choice(found) if found else None

    def get_config(self) -> dict[str, Any]:
        return {
            "depth": self.depth,
            "splits": list(self.splits),
            "stochastic": self.stochastic,
            "exact": self.exact,
            "statistics": self.statistics,
        }

    def schemes(self, model: Any, draw: int | None = None) -> list[dict[str, Any]]:
        """What is split, a row for each operator: its name, where the patches of its input and output begin along rows
        and columns (or for exact ones the elements that they read and make), and the paddings of each patch; and by
        which share more elements are computed than the whole image has.

        model: with an input shape that is known.  draw: the number of a stochastic scheme, None for even patches.
        """
        found = self._region(model)
        if found is None:
            return []
        region, layout = found, Layout(found, self, draw)
        rows = []
        for node in region.nodes:
            row: dict[str, Any] = {"node": node.name, "op": node.op.name}
            tensors = {"input": images_of(node)[0], "output": node.outputs[0]}
            for axis, name in zip(AXES, ("rows", "columns"), strict=True):
                count = self.splits[axis - 1]
                for what, tensor in tensors.items():
                    held = [layout.held[axis - 1][number][tensor] for number in range(count)]
                    row[f"{what} {name}"] = held if self.exact else [first for first, _ in held]
                patches = [(number, 0) if axis == 1 else (0, number) for number in range(count)]
                row[f"padding {name}"] = [_padding(node, layout, patch, axis) for patch in patches]
            row["more"] = layout.more(node.outputs[0])
            rows.append(row)
        return rows

    def describe(self, model: Any) -> str:
        """A line: what is split of a model, and by which share exact patches multiply more."""
        region = self._region(model)
        if region is None:
            return "patches: none"
        layout = Layout(region, self, None)
        flops = {node: float(replay_flops(node)) for node in region.nodes}
        again = sum(value * layout.more(node.outputs[0]) for node, value in flops.items())
        count = sum(isinstance(node.op, CONVOLUTIONS) for node in region.nodes)
        text = f"patches: {self.splits[0]}x{self.splits[1]} of {count} convolutions, up to {region.nodes[-1].name}"
        share = again / max(sum(flops.values()), 1.0)
        return text + (f"; {share:.1%} of their multiplications are done again" if self.exact else "")

    def _region(self, model: Any) -> Region | None:
        """What is split of a model.  Raises ValueError where its input shape is not known."""
        shape = getattr(model, "input_shape", None)
        if not isinstance(shape, tuple) or None in shape[1:]:
            raise ValueError(f"Split.schemes: expected a model with one input of a known shape, got {shape}")
        graph = Graph(training=True)
        with graph:
            x = graph.input("x", Spec((1, *shape[1:]), model.inputs[0].dtype))
            outputs = tree.flatten(model(x, training=True))
            graph.outputs = {f"y{i}": output for i, output in enumerate(outputs)}
        return Region.of(graph, self)


def _padding(node: Node, layout: Layout, patch: tuple[int, int], axis: int) -> tuple[int, int]:
    held = {tensor: layout.intervals(tensor, patch) for tensor in images_of(node)}
    op, _ = patched(node, layout.intervals(node.outputs[0], patch), held, layout.split)
    if isinstance(op, Pad):
        return op.padding[axis]
    padding: Any = getattr(op, "padding", None)
    return (0, 0) if padding is None else padding[axis - 1]
