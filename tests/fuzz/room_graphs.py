"""Random networks as plans of every kind, against a naive executor in float64: results, state, loss, gradients.

Networks of images, signals, volumes and sequences; plans with each variant, a memory limit, tensors to recompute or to
write to a disk, and exact patches.
"""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import numpy as np

from pydtconv import Split, config
from pydtconv.conv import VARIANTS
from pydtconv.graph import Disk, Offload, Plan, build_plan
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.graph.plan import MemoryLimitError
from pydtconv.graph.runtime.executor import Executor
from pydtconv.graph.runtime.memory import Memory
from tests.fuzz import networks, other_networks, trials
from tests.fuzz.comparison import NUDGE, begin, compare, naive, reset
from tests.fuzz.networks import Net, drawn

NETWORKS, PLANS = 8, 2
#: more images than others, of which most is known that can go wrong
SOURCES = (*(networks.images,) * 3, other_networks.signals, other_networks.volumes, other_networks.sequences)
#: so fast that it is worth writing to
DISK = Disk(50e9, 50e9, 1.0, 0.0)


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def prepare() -> None:
    """Networks of a few pixels have no storage that is worth a transfer."""
    Graph.thresholds = Thresholds(offloaded=1 << 10)


def run(seed: int) -> None:
    random = np.random.default_rng(seed)
    for index in range(NETWORKS):
        dtype = str(random.choice(("float32", "float64")))
        begin(dtype, seed + index)
        net = SOURCES[random.integers(len(SOURCES))](random)
        training = bool(random.random() < 0.8)
        told = f"seed {seed}, network {index}, {dtype}"
        trials.keep("network.txt", told.encode())
        want, moved = (naive(net, training, nudge) for nudge in (0.0, NUDGE[dtype]))
        trials.count("networks", "tried")
        for _ in range(PLANS):
            try:
                _try(net, training, want, moved, random, told)
            except Exception as error:
                raise AssertionError(f"{error}\n{drawn(net)}") from error


def _try(
    net: Net,
    training: bool,
    want: dict[str, np.ndarray],
    moved: dict[str, np.ndarray],
    random: np.random.Generator,
    told: str,
) -> None:
    dtype = config.floatx()
    plan, how = plan_of(net, training, random)
    told = f"{told}: {how}, {plan.variant}, x {net.arrays['x'].shape}, training {training}"
    memory = Memory()
    reset(net)
    executor = Executor(plan, memory)
    for run in range(2):  # a second run finds in the arena what the first has left
        reset(net)
        if memory.store is not None:
            memory.store.gradients[...] = np.nan
        got = executor.run(net.arrays)
        for name, value in got.items():
            compare(value, want[name], moved[name], dtype, f"{name}, run {run} of {told}")
        for variable in net.model.variables:
            compare(variable.value, want[variable.path], moved[variable.path], dtype, f"{variable.path} of {told}")
        gradients = [name for name in want if name.startswith("d ")]
        # some are sums of what cancels, as of a bias before a normalization: beside the others they are zero
        least = 0.1 * max((np.abs(want[name]).max(initial=0) for name in gradients), default=0)
        if training and memory.store is not None:
            found = {f"d {variable.path}": memory.store.gradient_of(variable) for variable in memory.store.variables}
            if set(found) != set(gradients):
                raise AssertionError(f"gradients of {sorted(found)}, expected {sorted(gradients)}, {told}")
            for name, value in found.items():
                compare(value, want[name], moved[name], dtype, f"{name}, run {run} of {told}", least)
        elif training and gradients:
            raise AssertionError(f"no gradients of {told}")
    memory.release_scratch_file()
    trials.count(f"{dtype} {'training' if training else 'inference'}, {how}", "right")


def plan_of(net: Net, training: bool, random: np.random.Generator) -> tuple[Plan, str]:
    """A plan and its kind: a variant, a limit of memory, tensors to recompute, threads."""
    config.set_num_threads(int(random.integers(1, 3)))
    variant = str(random.choice(list(VARIANTS)))
    # the search for what to write to a disk takes as long as ten other plans
    kinds = {"plain": 0.25, "memory limit": 0.25, "recompute": 0.2, "disk": 0.08, "exact patches": 0.22}
    kind = str(random.choice(list(kinds), p=list(kinds.values())))
    graph = net.trace(training)
    if kind == "recompute":
        tensors = [node.outputs[0] for node in graph.nodes]
        share = random.choice((0.0, 0.3, 0.7, 1.0))
        return build_plan(graph, variant, recompute=[t for t in tensors if random.random() < share]), kind
    if kind == "exact patches":
        graph.split = Split(float(random.uniform(0, 1)), tuple(int(v) for v in random.integers(1, 4, 2)), exact=True)
        try:
            return build_plan(graph, variant), kind
        except ValueError as error:  # no images, or fewer rows than patches
            if not str(error).startswith("split: "):
                raise
            graph, kind = net.trace(training), "plain"
    plan = build_plan(graph, variant)
    if kind == "plain":
        return plan, kind
    limit = 1 if kind == "disk" else int(plan.peak_bytes * random.uniform(0.2, 1.0))
    options: dict[str, Any] = {"offload": Offload(DISK, _scratch().name)} if kind == "disk" else {}
    try:
        limited = build_plan(net.trace(training), variant, memory_limit=limit, **options)
    except MemoryLimitError as error:
        limit = error.smallest_bytes
        if kind == "disk":
            limit = max(limit, int(limit + random.uniform(0, 0.7) * (plan.peak_bytes - limit)))
        limited = build_plan(net.trace(training), variant, memory_limit=limit, **options)
    if limited.peak_bytes > limit:
        raise AssertionError(f"a plan of {limited.peak_bytes} bytes for a limit of {limit}: {drawn(net)}")
    if kind == "disk" and (limited.offloaded is None or not limited.offloaded.moved):
        kind = "disk, not needed"
    return limited, kind
