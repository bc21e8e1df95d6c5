"""Training steps that are short: `python -m benchmarks.small --peer torch --peer keras-jax`.

Keras's network for MNIST and a network of eight dense layers of 256 units at batch 32, and ResNet20 at batch 8: what a
step costs beside its arithmetic counts here.  All sides train by SGD with momentum in fresh processes that take turns;
the median step of all rounds counts.  PyTorch runs in the faster one of its eager modes, Keras by `train_on_batch`, as
pydtconv does.  A peer that is not installed is said and left out.  Without images PyTorch's modes are one and the same,
and it has one.

Of pydtconv's step, "plan us" is what runs the plan, forward and backward; the rest is the optimizer, and Python around
both.  A second table tells what a node of a plan costs beyond its work: chains of layers that are so small that their
work is nothing, whose plans' times differ by the cost of the nodes that one has more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import memory, report
from benchmarks.networks import Case
from benchmarks.peers.description import describe
from benchmarks.peers.table import PEERS, add_peer_arguments, installed
from benchmarks.processes import in_own_process

CASES = (Case("mnist_convnet", 28, 32), Case("mlp_8x256", 256, 32), Case("resnet20", 32, 8))
MODES = ("nchw", "channels_last")
CHAINS = ("dense", "convolution", "batch normalization")
WARM = 3
Result = dict[str, Any]


def network(case: Case) -> Any:
    """The model of a case, not compiled."""
    import pydtconv as keras

    if case.network == "mlp_8x256":
        model = keras.Sequential([keras.Input((case.size,))], name=case.network)
        for _ in range(8):
            model.add(keras.layers.Dense(256, activation="relu"))
        model.add(keras.layers.Dense(10, activation="softmax"))
        return model
    channels = 1 if case.network == "mnist_convnet" else 3
    return keras.applications.build(case.network, input_shape=(case.size, case.size, channels), classes=10)


def chain(kind: str, layers: int) -> Any:
    """Layers of one kind, one after the other, and hardly any work in them."""
    import pydtconv as keras

    model = keras.Sequential([keras.Input((4, 4, 4))])
    for _ in range(layers):
        if kind == "dense":
            model.add(keras.layers.Dense(4))
        elif kind == "convolution":
            model.add(keras.layers.Conv2D(4, 3, padding="same", use_bias=False))
        else:
            model.add(keras.layers.BatchNormalization())
    model.add(keras.layers.GlobalAveragePooling2D())
    model.add(keras.layers.Dense(10, activation="softmax"))
    return model


def trained(model: Any, batch: int, steps: int) -> Result:
    """Trains on random samples in this process; notes what the runs of plans take, too."""
    import numpy as np

    import pydtconv as keras
    from pydtconv.graph.runtime.executor import Executor

    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, *model.input_shape[1:]), np.float32)
    y = rng.integers(0, 10, batch)
    run, whole, plans, nodes = Executor.run, [], [], 0

    def timed(executor: Executor, inputs: Any) -> Any:
        nonlocal nodes
        nodes = len(executor.plan.steps)
        start = time.perf_counter()
        found = run(executor, inputs)
        plans.append(time.perf_counter() - start)
        return found

    Executor.run = timed  # type: ignore[method-assign]
    for _ in range(steps + WARM):
        start = time.perf_counter()
        model.train_on_batch(x, y)
        whole.append(time.perf_counter() - start)
    Executor.run = run  # type: ignore[method-assign]
    return {"seconds": whole[WARM:], "plan": plans[WARM:], "nodes": nodes, "peak MiB": memory.peak()}


def node_cost(kind: str, steps: int) -> Result:
    """Seconds of a node of these layers' passes, and of what a plan and a step cost besides."""
    few, many = (trained(chain(kind, layers), 1, steps) for layers in (10, 60))
    a, b = (statistics.median(found["plan"]) for found in (few, many))
    rest_a, rest_b = (statistics.median(found["seconds"]) - plan for found, plan in ((few, a), (many, b)))
    return {"node": (b - a) / (many["nodes"] - few["nodes"]), "rest": rest_a, "layer": (rest_b - rest_a) / 50}


class Sides:
    """All sides of one case."""

    def __init__(self, case: Case, options: argparse.Namespace, folder: Path) -> None:
        self.case, self.steps, self.threads, self.pythons = case, options.steps, options.threads, options.pythons
        model = network(case)
        self.description, self.model = folder / f"{case.network}.described.json", folder / f"{case.network}.json"
        self.description.write_text(json.dumps(describe(model)))
        self.model.write_text(model.to_json())

    def run(self, side: str) -> Result:
        if side == "ours":
            return in_own_process("benchmarks.small", ["--one", self.case.network, self.steps], self.threads)
        name, _, mode = side.partition(" ")
        peer = PEERS[name]
        if peer.backend:
            return peer.train(
                [self.model, self.case.batch, self.steps, "perf_counter"], self.threads, self.pythons[name]
            )
        words = [self.description, self.case.size, self.case.batch, mode, self.steps, "float32", "perf_counter"]
        return peer.run("train", words, self.threads, self.pythons[name])


def row(case: Case, sides: list[str], options: argparse.Namespace, folder: Path) -> dict[str, object]:
    processes = Sides(case, options, folder)
    images = len(network(case).input_shape) > 2
    results: dict[str, list[Result]] = {side: [] for side in sides if images or side != "torch channels_last"}
    for _ in range(options.rounds):
        for side, found in results.items():
            found.append(processes.run(side))

    def median(side: str, what: str = "seconds") -> float:
        return 1e6 * statistics.median(value for result in results[side] for value in result[what])

    mine = median("ours")
    figures: dict[str, object] = {"network": case.network, "batch": case.batch, "us": mine}
    figures |= {"plan us": median("ours", "plan"), "nodes": results["ours"][0]["nodes"]}
    theirs = {side: median(side) for side in results if side != "ours"}
    if theirs:
        figures |= {f"{side} us": theirs.get(side) for side in sides if side != "ours"}
        figures["fastest peer / ours"] = min(theirs.values()) / mine
    return figures


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        (case,) = (case for case in CASES if case.network == sys.argv[2])
        print(json.dumps(trained(network(case), case.batch, int(sys.argv[3]))))
        return
    if sys.argv[1:2] == ["--chain"]:
        print(json.dumps(node_cost(sys.argv[2], int(sys.argv[3]))))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small", description=__doc__)
    add_peer_arguments(parser)
    networks = [case.network for case in CASES]
    parser.add_argument("--networks", nargs="+", default=networks, choices=networks, help="of the three")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side (default: 3)")
    parser.add_argument("--steps", type=int, default=100, help="timed steps of a process (default: 100)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    sides, options.pythons = ["ours"], installed(options.peer, options.peer_python)
    for peer in options.pythons:
        sides += [f"torch {mode}" for mode in MODES] if peer == "torch" else [peer]
    with tempfile.TemporaryDirectory() as folder:
        chosen = [case for case in CASES if case.network in options.networks]
        rows = []
        for case in chosen:
            rows.append(row(case, sides, options, Path(folder)))
            print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
    report.print_table("short training steps", rows)
    print(report.write_csv("small", rows))
    costs = []
    for kind in CHAINS:
        found = in_own_process("benchmarks.small", ["--chain", kind, options.steps], options.threads)
        costs.append({"layers": kind, "us a node": 1e6 * found["node"], "us a step besides": 1e6 * found["rest"]})
        costs[-1]["us a layer besides"] = 1e6 * found["layer"]
    report.print_table("what a node costs beyond its work", costs)
    print(report.write_csv("small_nodes", costs))


if __name__ == "__main__":
    main()
