"""Random networks with the policy mixed_bfloat16, as plans of every kind, beside the same network in float64.

Each activation is rounded to eight bits, so that only errors of a tenth of the largest number are failures, for
gradients of three tenths, and only where all numbers may move by as much as they are rounded without moving the
result by a fortieth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.graph import Node
from pydtconv.graph.runtime.executor import Executor
from pydtconv.graph.runtime.memory import Memory
from pydtconv.ops.layer_normalization import LayerNorm
from tests.fuzz import room_graphs, trials
from tests.fuzz.comparison import begin, naive, reset
from tests.fuzz.networks import Net, drawn
from tests.fuzz.room_graphs import SOURCES, plan_of

NETWORKS, PLANS = 3, 3
PICKING = ("MaxPool", "GlobalMaxPool", "Maximum", "Max")
WRONG, ROUNDED, MOVES = 0.1, 2.0**-8, 3


class Mixed(Net):
    """What comes out, in float32 again."""

    def call(self, x: Any, training: bool) -> Any:
        return ops.cast(super().call(x, training), config.floatx())


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for index in range(NETWORKS):
        state = random.bit_generator.state
        source = SOURCES[random.integers(len(SOURCES))]
        told = f"seed {seed}, network {index}"
        trials.keep("mixed.txt", told.encode())
        begin("float64", seed + index)
        config.set_dtype_policy("float64")
        wide = source(random)
        training = bool(random.random() < 0.8)
        want = naive(wide, training, 0.0)
        moves = [naive(wide, training, ROUNDED, 5 + i, less=1) for i in range(MOVES)]
        config.set_floatx("float32")
        random.bit_generator.state = state
        config.set_dtype_policy("mixed_bfloat16")
        try:
            random.integers(len(SOURCES))
            net = source(random)
            random.random()
            net.values = [value.astype(v.dtype) for v, value in zip(net.model.variables, wide.values, strict=True)]
            _compare_all(net, wide, training, want, moves, random, told)
        finally:
            config.set_dtype_policy("float32")


def _normalizes_one_number(node: Node) -> bool:
    return isinstance(node.op, LayerNorm) and node.inputs[0].shape[node.op.axis] == 1


def _compare_all(
    net: Net,
    wide: Net,
    training: bool,
    want: dict[str, np.ndarray],
    moves: list[dict[str, np.ndarray]],
    random: np.random.Generator,
    told: str,
) -> None:
    mixed = Mixed(net.model, net.loss, net.arrays, net.values)
    paths = {ours.path: theirs.path for ours, theirs in zip(net.model.variables, wide.model.variables, strict=True)}
    # which of two numbers is the larger one rounding decides, and so where all of a gradient goes
    nodes = net.trace(True).nodes
    # ... and what is left of the difference of a number from itself, which a normalization of one number divides
    picks = any(type(node.op).__name__ in PICKING or _normalizes_one_number(node) for node in nodes)
    for _ in range(PLANS):
        plan, how = plan_of(mixed, training, random)
        memory = Memory()
        executor = Executor(plan, memory)
        for run in range(2):
            reset(net)
            if memory.store is not None:
                memory.store.gradients[...] = np.nan
            found = {name: np.array(value) for name, value in executor.run(net.arrays).items()}
            if training and memory.store is not None:
                for variable in memory.store.variables:
                    found[f"d {paths[variable.path]}"] = memory.store.gradient_of(variable)
            found |= {paths[variable.path]: np.array(variable.value) for variable in net.model.variables}
            least = max(
                (np.abs(value).max(initial=0) for name, value in want.items() if name.startswith("d ")), default=0
            )
            for name, value in found.items():
                if name.startswith("d ") and picks:
                    trials.count("arrays", "left out: rounding decides")
                    continue
                floor = 0.3 * least if name.startswith("d ") else 1e-2
                scale = max(np.abs(want[name]).max(initial=0), floor, 1e-30)  # all gradients may be zero
                shifts = max(np.abs(other[name] - want[name]).max(initial=0) for other in moves)
                if not np.isfinite(want[name]).all() or not shifts <= WRONG / 4 * scale:
                    trials.count("arrays", "left out: rounding decides")
                    continue
                error = np.abs(value - want[name]).max(initial=0) / scale
                if not error <= (3 * WRONG if name.startswith("d ") else WRONG):
                    text = (
                        f"error {error:.2e} in {name}, run {run} of {told}: {how}, {plan.variant}, training {training}"
                    )
                    raise AssertionError(f"{text}\n{drawn(mixed)}")
                trials.count("arrays", "right")
        memory.release_scratch_file()
        trials.count(f"{'training' if training else 'inference'}, {how}", "right")


prepare = room_graphs.prepare
