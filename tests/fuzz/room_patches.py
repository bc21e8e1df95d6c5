"""Random networks of images in patches (`Split`), against the same networks written by hand from crops and paddings.

By hand a patch is a crop of each tensor, where `Split.schemes` says that it begins, put back to its place among zeros
(among nothing, for poolings): there the operator runs on the whole image, and the patch of its result is cut out.  What
the patches have at the end is concatenated.  The naive executor runs that in float64.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from pydtconv import Split, config, ops
from pydtconv.conv import VARIANTS
from pydtconv.graph import Graph, Tensor, build_plan
from pydtconv.graph.ir.graph import Node
from pydtconv.graph.runtime.executor import Executor
from pydtconv.graph.runtime.memory import Memory
from pydtconv.ops.base import Op, Window
from tests.fuzz import networks, trials
from tests.fuzz.comparison import NUDGE, begin, compare, naive, reset
from tests.fuzz.networks import Net, drawn

NETWORKS, SPLITS, LOWEST = 6, 2, -1e30
Patch = tuple[int, int]
Parts = dict[Patch, Any]


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for index in range(NETWORKS):
        dtype = str(random.choice(("float32", "float64")))
        begin(dtype, seed + index)
        net = networks.images(random)
        told = f"seed {seed}, network {index}, {dtype}"
        trials.keep("patches.txt", told.encode())
        for _ in range(SPLITS):
            split = _split(random)
            draw = int(random.integers(64)) if split.draws(0) else None
            try:
                _try(net, split, draw, random, f"{told}, {split}, draw {draw}")
            except Exception as error:
                raise AssertionError(f"{error!r} of {told}, {split}, draw {draw}\n{drawn(net)}") from error


def _split(random: np.random.Generator) -> Split:
    return Split(
        float(random.uniform(0.4, 1)),
        ((1, 2), (2, 1), (2, 2), (3, 1), (2, 3), (3, 3))[random.integers(6)],
        stochastic=float(random.choice((0.0, 0.1, 0.45))),
        statistics=str(random.choice(("patch", "image"))),
    )


def _try(net: Net, split: Split, draw: int | None, random: np.random.Generator, told: str) -> None:
    dtype = config.floatx()
    kind = f"{'stochastic' if split.stochastic else 'even'}, statistics of the {split.statistics}"
    graph = net.trace(True)
    graph.split, graph.split_draw = split, draw
    config.set_num_threads(int(random.integers(1, 3)))
    try:
        plan = build_plan(graph, str(random.choice(list(VARIANTS))))
    except ValueError as error:  # more patches than rows
        if not str(error).startswith("split: "):
            raise
        trials.count(kind, "refused")
        return
    hand = ByHand(net, split, draw)
    if not hand.table:
        trials.count(kind, "nothing to split")
        return
    want, moved = (naive(hand, True, nudge) for nudge in (0.0, NUDGE[dtype]))
    memory = Memory()
    executor = Executor(plan, memory)
    gradients = [name for name in want if name.startswith("d ")]
    least = 0.1 * max((np.abs(want[name]).max(initial=0) for name in gradients), default=0)
    for _ in range(2):
        reset(net)
        for name, value in executor.run(net.arrays).items():
            compare(value, want[name], moved[name], dtype, f"{name} of {told}")
        for variable in net.model.variables:
            compare(variable.value, want[variable.path], moved[variable.path], dtype, f"{variable.path} of {told}")
        for variable in memory.store.variables if memory.store is not None else ():
            name, found = f"d {variable.path}", memory.store.gradient_of(variable)
            compare(found, want[name], moved[name], dtype, f"{name} of {told}", least)
    trials.count(kind, "right")


class ByHand(Net):
    """A network whose first part is made of patches.  table: what is split, a row for each operator."""

    def __init__(self, net: Net, split: Split, draw: int | None) -> None:
        super().__init__(net.model, net.loss, net.arrays, net.values)
        self.split = split
        self.table = {str(row["node"]): row for row in split.schemes(net.model, draw)} if split.patches > 1 else {}

    def trace(self, training: bool) -> Graph:
        whole, graph = super().trace(training), Graph(training=training)
        with graph:
            made: dict[Tensor, Any] = {}
            for name, tensor in whole.inputs.items():
                made[tensor] = graph.input(name, tensor.spec)
            parts: dict[Tensor, Parts] = {}
            inside = [node for node in whole.nodes if node.name in self.table]
            assert len(inside) == len(self.table)
            for node in whole.nodes:
                if node.name in self.table:
                    self._patches(node, made, parts)
                    if node is inside[-1]:
                        made[node.outputs[0]] = _joined(parts[node.outputs[0]])
                else:
                    results = node.op(*(_whole(tensor, made) for tensor in node.inputs))
                    made.update(zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True))
        graph.outputs = {name: made[tensor] for name, tensor in whole.outputs.items()}
        graph.loss = None if whole.loss is None else made[whole.loss]
        return graph

    def _patches(self, node: Node, made: dict[Tensor, Any], parts: dict[Tensor, Parts]) -> None:
        """The patches of the node's result."""
        row, out, x = self.table[node.name], node.outputs[0], node.inputs[0]
        images = [tensor for tensor in node.inputs if len(tensor.shape) == 4 and tensor.variable is None]
        for tensor in images:
            if tensor not in parts:
                parts[tensor] = _cut(made[tensor], _places(row, "input", tensor))
        to, op = _places(row, "output", out), node.op
        windows = [op.window(axis, *(tensor.spec for tensor in node.inputs)) for axis in (1, 2)]
        if isinstance(op, ops.Pad):
            windows = [Window(1, 1, 1, *op.padding[axis]) for axis in (1, 2)]
        normalizes = isinstance(op, ops.BatchNorm) and not op.frozen
        if normalizes and self.split.statistics == "image":
            parts[out] = _cut(op(_joined(parts[x]), *(_whole(t, made) for t in node.inputs[1:])), to)
            return
        if normalizes:
            op = dataclasses.replace(op, momentum=op.momentum ** (1 / self.split.patches))
        found: Parts = {}
        for patch in to:
            if windows[0] is not None and windows[1] is not None:
                place = _places(row, "input", x)[patch]
                others = [_whole(tensor, made) for tensor in node.inputs[1:]]
                y = _windowed(op, (windows[0], windows[1]), parts[x][patch], place, x, others)
                found[patch] = _crop(y, to[patch])
            else:
                found[patch] = op(*(parts[t][patch] if t in parts else _whole(t, made) for t in node.inputs))
        parts[out] = found


def _places(row: dict[str, Any], what: str, tensor: Tensor) -> dict[Patch, tuple[Patch, Patch]]:
    """First and last element along rows and columns, by patch."""
    axes = []
    for axis, name in ((1, "rows"), (2, "columns")):
        starts = [*row[f"{what} {name}"], tensor.shape[axis]]
        assert starts[0] == 0
        assert all(a < b for a, b in itertools.pairwise(starts))
        axes.append(list(itertools.pairwise(starts)))
    return {(i, j): (a, b) for i, a in enumerate(axes[0]) for j, b in enumerate(axes[1])}


def _windowed(
    op: Op, windows: tuple[Window, Window], x: Any, place: tuple[Patch, Patch], like: Tensor, more: Any
) -> Any:
    """The operator on a whole image of nothing but this patch, with the image's own padding."""
    extents = like.shape[1:3]
    sides = [
        (first + window.before, extent - last + window.after)
        for window, (first, last), extent in zip(windows, place, extents, strict=True)
    ]
    around = ((0, 0), *sides, (0, 0))
    if isinstance(op, ops.Pad):
        return ops.Pad(around, op.mode, op.value)(x)
    alone: Any = dataclasses.replace(op, padding="valid")
    if isinstance(op, ops.MaxPool):
        return alone(ops.Pad(around, "constant", LOWEST)(x))
    y = alone(ops.Pad(around)(x), *more)
    if not isinstance(op, ops.AveragePool):
        return y
    there = np.pad(np.ones([last - first for first, last in place]), sides)
    taken = np.lib.stride_tricks.sliding_window_view(there, [w.kernel for w in windows])
    counts = taken.sum((2, 3))[:: windows[0].stride, :: windows[1].stride]
    share = windows[0].kernel * windows[1].kernel / np.maximum(counts, 1)
    return y * share[None, :, :, None]


def _whole(tensor: Tensor, made: dict[Tensor, Any]) -> Any:
    if tensor.variable is not None:
        return tensor.variable
    return made.get(tensor, tensor.constant)


def _crop(x: Any, place: tuple[Patch, Patch]) -> Any:
    (top, bottom), (left, right) = place
    return x[:, top:bottom, left:right]


def _cut(x: Any, places: dict[Patch, tuple[Patch, Patch]]) -> Parts:
    return {patch: _crop(x, place) for patch, place in places.items()}


def _joined(parts: Parts) -> Any:
    rows = [
        ops.Concatenate(2)(*(parts[i, j] for j in sorted({j for _, j in parts}))) for i in sorted({i for i, _ in parts})
    ]
    return ops.Concatenate(1)(*rows)
