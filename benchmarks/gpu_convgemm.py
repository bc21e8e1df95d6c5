"""What CONVGEMM's kernels for GPUs ask of memory in the passes of networks, counted on the device "host".

Blocks of a launch are alike but for the edges of images, where there is less to load, so that one in the middle is
counted, of backward_data one for each residue of its strides; all others are taken to be the same.  Sums have equal
steps, too: two short ones are counted, and what a step asks for follows.  The roofline is that of gpu_counts.py; where
tiles are not full, what they multiply is more than the convolution's operations, and the share is of the latter.

In TF32 the roofline is that of tensor cores: memory moves images and filters once, and what blocks read again comes
from L2.  `filled` is how many blocks a multiprocessor has on average, to how many the busiest one has; it is not in
the bound.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import pydtconv as keras
from benchmarks import networks
from benchmarks.gpu_counts import H100, H100_TF32, PRODUCT, CountingHost, Counts, Roof
from benchmarks.networks import Case
from pydtconv import config
from pydtconv.conv.problem import DIRECTIONS, ConvProblem
from pydtconv.devices.tuning import bind
from pydtconv.kernels.base import Call
from pydtconv.kernels.gpu.convolutions.convgemm import Convgemm, Plan
from pydtconv.kernels.gpu.convolutions.tiles import PROCESSORS

CASES = (Case("resnet34", 224, 16), Case("vgg16", 224, 8), Case("densenet121", 224, 16))


class SamplingHost(CountingHost):
    """Runs one block of a launch, or with `residues` one of each plane of the grid; counts are those of all blocks."""

    def __init__(self, residues: bool) -> None:
        super().__init__()
        self._residues = residues

    def bind_kernel(
        self, kernel: str, dtype: str, grid: tuple[int, ...], threads: int, arguments: Sequence[Any]
    ) -> Call:
        call, of = (
            super().bind_kernel(kernel, dtype, grid, threads, arguments),
            self.library(kernel.split(".")[0], dtype),
        )
        blocks = grid[0] * grid[1] * grid[2]
        step = grid[0] * grid[1] if self._residues else blocks

        def run() -> None:
            some = of.launch_some
            some.argtypes = [ctypes.c_int64, ctypes.c_int64]
            some(min(grid[0] // 2, step - 1), step)
            try:
                call()
            finally:
                some(0, 1)
            name, counts = self.launches.pop()
            self.launches.append((name, Counts(*(count * step for count in counts))))

        return run


class Cut(Convgemm):
    """Convgemm by the plan of another problem; sums of backward_weights of so many pixels."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def plan(self, p: ConvProblem, direction: str, wide: bool, tf32: bool = False) -> Plan:
        return self._plan


def counts_of(p: ConvProblem, direction: str, tf32: bool = False) -> tuple[str, Counts]:
    """The kernel of a pass and what all its blocks ask for, the sum of partial sums left out."""
    plan = Convgemm().plan(p, direction, True, tf32)
    if direction == "backward_weights":
        short = [64, 128] if plan.pixels > 128 else [plan.pixels]
        found = [_counted(p, direction, plan._replace(pixels=pixels)) for pixels in short]
        return found[0][0], _extended([counts for _, counts in found], short, plan.pixels)
    channels = (p.ci if direction == "forward" else p.co) // p.groups
    unit = plan.tile.deep * plan.tile.slices
    short = [unit, 2 * unit] if channels % unit == 0 and channels > 2 * unit else [channels]
    found = [_counted(_of_channels(p, direction, count * p.groups), direction, plan) for count in short]
    return found[0][0], _extended([counts for _, counts in found], short, channels)


def _of_channels(p: ConvProblem, direction: str, count: int) -> ConvProblem:
    """The problem with so many channels of those that the pass sums over."""
    ci, co = (count, p.co) if direction == "forward" else (p.ci, count)
    x, w = (*p.x_shape[:-1], ci), (*p.kernel, ci // p.groups, co)
    return ConvProblem.of(x, w, p.strides, p.padding, p.dilation, p.groups)


def _extended(counts: Sequence[Counts], short: Sequence[int], size: int) -> Counts:
    """Counts of a size from those of two shorter ones."""
    if len(counts) == 1:
        return counts[0]
    steps = (size - short[0]) / (short[1] - short[0])
    return Counts(*(round(first + (second - first) * steps) for first, second in zip(*counts, strict=True)))


def _counted(p: ConvProblem, direction: str, plan: Plan) -> tuple[str, Counts]:
    device = SamplingHost(direction == "backward_data")
    arrays = [device.zeros(shape, np.float32) for shape in (p.x_shape, p.w_shape, p.y_shape)]
    workspace = device.zeros((plan.parts * int(np.prod(p.w_shape)) * 4,), np.uint8)
    bind(device.launcher(), p, direction, Cut(plan), arrays, workspace)()
    return device.launches[0]


def convolutions_of(case: Case) -> Counter[ConvProblem]:
    """The convolutions of a network that convgemm is the default of, and how many there are of each."""
    model, found = networks.compiled(case), Counter[ConvProblem]()
    with keras.device("host"):
        plan = model.plan(batch_size=case.batch)
    for node, names in plan.algorithms.items():
        p = node.op.problem(*(tensor.spec for tensor in node.inputs[:2]))
        if "convgemm" in names.values():
            found[p] += 1
    return found


def table(cases: Iterable[Case] = CASES, tf32: bool = False) -> Iterator[dict[str, object]]:
    """A row for each convolution of networks and pass; no gradient of an image of three colors."""
    for case in cases:
        for p, layers in convolutions_of(case).items():
            for direction in DIRECTIONS if p.ci > 3 else ("forward", "backward_weights"):
                yield (row_in_tf32 if tf32 else row)(case, p, direction, layers)


def row(case: Case, p: ConvProblem, direction: str, layers: int, roof: Roof = H100) -> dict[str, object]:
    kernel, counts = counts_of(p, direction)
    plan, seconds = Convgemm().plan(p, direction, True), roof.seconds(counts)
    return _described(case, p, direction, layers, kernel, counts, plan) | {
        "operations_to_least": round(counts.operations / p.flops, 3),
        "bound_us": round(1e6 * seconds, 2),
        "share_of_peak": round(p.flops / roof.operations / seconds, 3),
    }


def row_in_tf32(case: Case, p: ConvProblem, direction: str, layers: int, roof: Roof = H100_TF32) -> dict[str, object]:
    kernel, counts = counts_of(p, direction, True)
    plan, least = Convgemm().plan(p, direction, True, True), 4 * sum(map(math.prod, (p.x_shape, p.w_shape, p.y_shape)))
    seconds, tile = roof.seconds(counts, least), plan.tile
    blocks = counts.warps * 32 // tile.threads
    return _described(case, p, direction, layers, kernel, counts, plan) | {
        "operations_to_least": round(counts.products * PRODUCT / p.flops, 3),
        "filled": round(blocks / (-(-blocks // PROCESSORS) * PROCESSORS), 3),
        "bound_us": round(1e6 * seconds, 2),
        "share_of_peak": round(p.flops / roof.products / seconds, 3),
    }


def _described(
    case: Case, p: ConvProblem, direction: str, layers: int, kernel: str, counts: Counts, plan: Plan
) -> dict[str, object]:
    return {
        **{"network": case.network, "images": case.size, "batch": case.batch, "layers": layers},
        **{"x": _by(p.x_shape), "w": _by(p.w_shape), "stride": p.strides[-1], "pass": direction, "kernel": kernel},
        "parts": plan.parts,
        "sectors_to_requested": round(counts.sectors_to_requested, 3),
        "passes_to_least": round(counts.conflicts, 3),
    }


def _by(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def shares(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By network and pass, the share of the peak over all of its layers."""
    least: Counter[tuple[str, str]] = Counter()
    whole: Counter[tuple[str, str]] = Counter()
    for one in rows:
        key, seconds = (one["network"], one["pass"]), one["layers"] * one["bound_us"]
        whole[key] += seconds
        least[key] += seconds * one["share_of_peak"]
    networks = dict.fromkeys(network for network, _ in whole)
    return {name: {of: least[name, of] / whole[name, of] for n, of in whole if n == name} for name in networks}


def memory(cases: Iterable[Case]) -> Iterator[dict[str, object]]:
    """What plans of training take by the defaults and, as before there was convgemm, with im2col."""
    for case in cases:
        found = {}
        for variant in ("BASE", "AUTO"):
            config.set_conv_variant(variant)
            try:
                with keras.device("host"):
                    found[variant] = networks.compiled(case).plan(batch_size=case.batch).peak_bytes
            finally:
                config.set_conv_variant("AUTO")
        yield {
            **{"network": case.network, "images": case.size, "batch": case.batch},
            **{"im2col MiB": round(found["BASE"] / 2**20, 1), "MiB": round(found["AUTO"] / 2**20, 1)},
            "share": round(found["AUTO"] / found["BASE"], 3),
        }
