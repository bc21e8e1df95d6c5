"""Depthwise, batch normalization and pointwise convolution in prediction, joined and apart: `python -m
benchmarks.separable`.

Each block of a network in which the plan joins them is run as one operator and as three, which take turns in one
process.  Times are the process's, of all threads: other processes stretch them less than the clock's.  Above 1, the
time ratio says that the joined one is slower.  The last row sums the blocks of the network, as often as it has them.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.timing import medians
from pydtconv import applications, config, layers
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.graph.passes.order import PASSES
from pydtconv.ops.base import Spec
from pydtconv.ops.separable_convolution import SeparableConv

NAME = "separable-convolutions"


def blocks_of(network: str, batch: int, size: int) -> Counter[tuple[Any, ...]]:
    """What tells blocks apart, and how many of each there are: sizes of x, filters, strides, activation."""
    model, graph = getattr(applications, network)(weights=None), Graph()
    with graph:
        graph.outputs = {"y": model(graph.input("x", Spec((batch, size, size, 3))))}
    found: Counter[tuple[Any, ...]] = Counter()
    for node in build_plan(graph).graph.nodes:
        op = node.op
        if isinstance(op, SeparableConv) and op.between is not None:
            x, d, w = (tensor.spec.shape for tensor in node.inputs[:3])
            found[x, d[:2], w[-1], op.strides, op.padding, op.between.activation] += 1
    return found


def executor_of(block: tuple[Any, ...], joins: bool) -> Executor:
    x, kernel, filters, strides, padding, activation = block
    graph = Graph()
    with graph:
        y = graph.input("x", Spec(x))
        if not isinstance(padding, str):
            y, padding = layers.ZeroPadding2D(padding)(y), "valid"
        y = layers.DepthwiseConv2D(kernel, strides, padding, use_bias=False)(y)
        y = layers.BatchNormalization()(y)
        if activation is not None:
            y = layers.ReLU(6.0)(y) if activation == "relu6" else layers.Activation(activation)(y)
        graph.outputs = {"y": layers.Conv2D(filters, 1, use_bias=False)(y)}
    passes = [each if joins or each.name != NAME else replace(each, run=lambda graph: None) for each in PASSES]
    return Executor(build_plan(graph, passes=passes), Memory())


def row_of(block: tuple[Any, ...], count: int, threads: int, seconds: float) -> dict[str, Any]:
    x = np.random.default_rng(0).normal(size=block[0]).astype("float32")
    sides = {name: executor_of(block, joins) for name, joins in (("joined", True), ("apart", False))}
    calls = {name: functools.partial(side.run, {"x": x}) for name, side in sides.items()}
    times = medians(calls, seconds, time.process_time, threads)
    joined, apart = times["joined"], times["apart"]
    found = "x".join(map(str, block[0])), block[2], str(block[3]), count
    return {
        **dict(zip(("x", "filters", "strides", "blocks"), found, strict=True)),
        "joined ms": 1e3 * joined,
        "apart ms": 1e3 * apart,
        "time ratio": joined / apart,
        "joined MiB": sides["joined"].plan.arena_bytes / 2**20,
        "apart MiB": sides["apart"].plan.arena_bytes / 2**20,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="MobileNetV2")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224, help="of the images")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each block")
    parser.add_argument("--name", default="separable", help="of the file of results")
    options = parser.parse_args(arguments)
    config.set_num_threads(options.threads)
    blocks = blocks_of(options.network, options.batch, options.size)
    rows = [row_of(block, count, options.threads, options.seconds) for block, count in blocks.items()]
    joined, apart = (sum(row[side] * row["blocks"] for row in rows) for side in ("joined ms", "apart ms"))
    whole = {"x": "all", "blocks": sum(blocks.values()), "joined ms": joined, "apart ms": apart}
    rows.append(rows[0] | dict.fromkeys(rows[0], "") | whole | {"time ratio": joined / apart})
    report.print_table(f"{options.network}, {options.batch} images, {options.threads} threads", rows)
    print(report.write_csv(options.name, rows))


if __name__ == "__main__":
    main()
