"""What `python -m benchmarks.gpu --peer torch` measures on a GPU, beside cuFFT, cuDNN and PyTorch there.

transforms: of the lengths of the fbfft paper (Vasilache et al., ICLR 2015), in batches of 4 to 65,536.  layers, table:
the layers of layers.txt and of the paper's tables 3 and 4, each pass by the fastest algorithm and strategy, all
of which are timed.  phases: its table 5.  sweep: its 8,232 configurations, sampled.  training: steps of whole networks.
A `Peer` says where PyTorch computes: on the GPU, or, for tests, on this machine.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.fft_tables import COLUMNS, LAYERS, SWEEP, TABLES, problem
from pydtconv import config
from pydtconv.conv import ConvProblem
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.devices.tuning import DeviceBench
from pydtconv.kernels.gpu.convolutions.fourier import Fourier
from pydtconv.kernels.gpu.convolutions.spectra import Spectra
from pydtconv.kernels.gpu.convolutions.strategies import Tile, default_of
from pydtconv.kernels.gpu.fourier import Side, Transform, interleaved
from pydtconv.kernels.gpu.fourier_planes import SquareTransform, serves

LENGTHS = (8, 16, 32, 64, 128, 256)
BATCHES = (4, 32, 128, 1024, 4096, 16384, 65536)
#: elements beyond which a batch is left out
MOST = 1 << 28

Row = dict[str, object]


@dataclass(frozen=True)
class Peer:
    """PyTorch on a device: "cuda", or "cpu" for tests.  seconds: for each measurement of ours."""

    torch: Any
    where: str = "cuda"
    seconds: float = 1.0

    def wait(self) -> None:
        if self.where == "cuda":
            self.torch.cuda.synchronize()

    def seconds_of(self, call: Callable[[], Any], runs: int = 20) -> float:
        return seconds_of(call, self.wait, runs)

    def zeros(self, shape: Sequence[int]) -> Any:
        return self.torch.zeros(tuple(shape), device=self.where)


def seconds_of(call: Callable[[], Any], wait: Callable[[], Any], runs: int = 20) -> float:
    """The median of five rounds of so many calls."""
    call()
    rounds = []
    for _ in range(5):
        wait()
        start = time.perf_counter()
        for _ in range(runs):
            call()
        wait()
        rounds.append((time.perf_counter() - start) / runs)
    return statistics.median(rounds)


def transforms(
    device: Any, peer: Peer, lengths: Iterable[int] = LENGTHS, batches: Iterable[int] = BATCHES
) -> Iterator[Row]:
    """Real transforms of rows, and of squares, beside cuFFT's by torch.fft."""
    for n, rank, batch in itertools.product(lengths, (1, 2), batches):
        if batch * n**rank > MOST:
            continue
        half, launcher = n // 2 + 1, device.launcher()
        x = device.zeros((batch, *[n] * rank), np.float32)
        y = device.zeros((batch, *[n] * (rank - 1), half), np.complex64)
        rows = batch * n ** (rank - 1)
        first = Transform(n, False, (1, 1, rows), Side(0, 0, n, 1), interleaved(0, 0, half, 1), 0, n, half)
        calls = [first.bind(launcher, x, y)]
        if rank == 2 and serves(n, n, "float32", True):
            sides = Side(n * n, n, 1, 1), interleaved(n * half, half, 1, 1)
            calls = [SquareTransform(n, False, (batch, 1), *sides, (0, 0), (n, n)).bind(launcher, x, y)]
        elif rank == 2:
            side = interleaved(n * half, 0, 1, half)
            calls.append(Transform(n, False, (batch, 1, half), side, side, 0, n, n).bind(launcher, y, y))
        theirs = peer.torch.fft.rfft if rank == 1 else peer.torch.fft.rfft2
        array = peer.zeros((batch, *[n] * rank))

        def ours(calls: list[Any] = calls) -> None:
            for call in calls:
                call()

        mine = seconds_of(ours, device.synchronize)
        cufft = peer.seconds_of(lambda f=theirs, a=array: f(a))  # type: ignore[misc]
        row: Row = {"points": n, "axes": rank, "batch": batch, "ms": 1e3 * mine, "cuFFT ms": 1e3 * cufft}
        yield row | {"to cuFFT": cufft / mine}


def convolution(device: Any, peer: Peer, p: ConvProblem, direction: str) -> Row:
    """The fastest algorithm of a pass, all having been timed, beside cuDNN's choice (channels_last)."""
    bench = DeviceBench(device)
    found = bench.measure(p, direction, bench.names(p, direction), peer.seconds)
    best = min(found, key=found.__getitem__)
    cudnn = peer.seconds_of(_cudnn(peer, p, direction))
    row: Row = {"pass": direction, "algorithm": best, "ms": 1e3 * found[best], "cuDNN ms": 1e3 * cudnn}
    row["to cuDNN"] = cudnn / found[best]
    row |= {f"{name} ms": 1e3 * found[name] if name in found else "" for name in ("convgemm", "im2col")}
    return row | {"GFLOP": p.flops / 1e9, "workspace MiB": bench.workspace_bytes(p, direction, best) / 2**20}


def layers(device: Any, peer: Peer, problems: dict[str, ConvProblem]) -> Iterator[Row]:
    """All passes of layers by name; no gradient of an image of three colors."""
    as_we_compute(peer)
    for name, p in problems.items():
        for direction in DIRECTIONS if p.ci > 3 else ("forward", "backward_weights"):
            yield {"layer": name, "batch": p.n, **convolution(device, peer, p, direction)}


def table(number: int, batch: int = 128) -> dict[str, ConvProblem]:
    """The layers of table 3 or 4 of the paper."""
    return {name: problem(sizes, batch) for name, sizes in TABLES[number].items()}


def phases(device: Any, problems: dict[str, ConvProblem] | None = None) -> Iterator[Row]:
    """Table 5: what transforms of both operands, products and transforms back take in each pass."""
    for name, p in (problems or {name: problem(sizes, 128) for name, sizes in LAYERS.items()}).items():
        for direction in DIRECTIONS:
            took = {}
            for part, calls in _phases(device, p, direction).items():

                def run(calls: list[Any] = calls) -> None:
                    for call in calls:
                        call()

                run()
                took[f"{part} ms"] = 1e3 * device.seconds_of(run)
            row: Row = {"layer": name, "pass": direction, "batch": p.n, "algorithm": str(default_of(p))}
            yield row | took | {"pass ms": sum(took.values())}


def _phases(device: Any, p: ConvProblem, direction: str) -> dict[str, list[Any]]:
    """The calls of a pass by "fft", by phase; the order among tiles does not change what they take."""
    launcher, layout = device.launcher(), Fourier().layout(p, direction)
    x, w, y = (device.zeros(shape, p.dtype) for shape in (p.x_shape, p.w_shape, p.y_shape))
    workspace = device.arena(Fourier().workspace(p, direction))
    spectra = Spectra(p, direction, layout, None, workspace, x)
    found: dict[str, list[Any]] = {"first": [], "second": [], "products": [], "back": []}
    weights = direction == "backward_weights"
    if not weights:
        found["second"] += spectra.filters(launcher, w)
    source, target = {"forward": (x, y), "backward_data": (y, x), "backward_weights": (x, y)}[direction]
    for number, (tile_h, tile_w) in enumerate(spectra.tiles()):
        first, second = spectra.operands(number)
        found["first"] += spectra.image(launcher, source, tile_h, tile_w, first)
        if weights:
            own = [Tile(tile.first, tile.count, tile.first, 0, tile.count) for tile in (tile_h, tile_w)]
            found["second"] += spectra.image(launcher, target, own[0], own[1], second, True, 1)
            first = first.transpose((0, 2, 1))
        elif direction == "backward_data":
            second = second.transpose((0, 2, 1))
        found["products"].append(launcher.gemm_batched(first, second, spectra.product))
        if not weights:
            found["back"] += spectra.back(launcher, target, tile_h, tile_w, (0, 0), False)
    if weights:
        found["back"] += spectra.filters_back(launcher, w)
    return found


def sweep(
    device: Any, peer: Peer, sample: int = 300, seed: int = 0, seconds: float = 1200.0, most: float = 400.0
) -> Iterator[Row]:
    """Some of the 8,232 configurations by a seed, of at most so many GFLOP, as many as time suffices for."""
    as_we_compute(peer)
    every, end = list(itertools.product(*SWEEP)), time.monotonic() + seconds
    for sizes in random.Random(seed).sample(every, sample):
        batch, ci, co, kernel, out = sizes
        p = ConvProblem(batch, out + kernel - 1, out + kernel - 1, ci, co, (kernel, kernel))
        if p.flops > most * 1e9:
            continue
        for direction in DIRECTIONS:
            yield {**dict(zip(COLUMNS, sizes, strict=True)), **convolution(device, peer, p, direction)}
        if time.monotonic() > end:
            return


def as_we_compute(peer: Peer) -> None:
    """Has PyTorch time its algorithms, and round operands to TF32 where we do."""
    rounds = config.float32_matmul_precision() != "highest"
    peer.torch.backends.cudnn.benchmark = True
    peer.torch.backends.cudnn.allow_tf32 = peer.torch.backends.cuda.matmul.allow_tf32 = rounds


def _cudnn(peer: Peer, p: ConvProblem, direction: str) -> Callable[[], Any]:
    torch = peer.torch
    (top, bottom), (left, right) = p.padding
    x = peer.zeros((p.n, p.ci, p.ih, p.iw))
    if (top, left) != (bottom, right):
        x = torch.nn.functional.pad(x, (left, right, top, bottom))
        top = left = 0
    x = x.to(memory_format=torch.channels_last)
    w = peer.zeros((p.co, p.ci // p.groups, p.kh, p.kw)).to(memory_format=torch.channels_last)
    options = {"stride": p.strides, "padding": (top, left), "dilation": p.dilation, "groups": p.groups}
    if direction == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, **options)
    dy = torch.zeros_like(torch.nn.functional.conv2d(x, w, **options))
    if direction == "backward_data":
        return lambda: torch.nn.grad.conv2d_input(x.shape, w, dy, **options)
    return lambda: torch.nn.grad.conv2d_weight(x, w.shape, dy, **options)


def training(device: Any, peer: Peer, cases: Iterable[Any] | None = None, runs: int = 5) -> Iterator[Row]:
    """Steps of the eight configurations, images of 32 and 224 pixels, beside PyTorch's in channels_last.

    Ours copies its images to the GPU and the loss back; PyTorch's has them there, and the loss stays.
    """
    import pydtconv as keras
    from benchmarks import networks

    as_we_compute(peer)
    for case in networks.cases() if cases is None else cases:
        model = networks.compiled(case)
        x, y = networks.batch_of(case, model)
        with keras.device(device.name):
            ours = seconds_of(lambda m=model, a=x, b=y: m.train_on_batch(a, b), lambda: None, runs)  # type: ignore[misc]
        theirs = peer.seconds_of(_torch_step(peer, model, x, y), runs)
        row: Row = {"network": case.network, "images": case.size, "batch": case.batch}
        row |= {"images/s": case.batch / ours, "PyTorch images/s": case.batch / theirs}
        yield row | {"to PyTorch": theirs / ours}


def _torch_step(peer: Peer, model: Any, x: Any, y: Any) -> Callable[[], Any]:
    from benchmarks.peers.description import describe
    from benchmarks.peers.torch_networks import Network

    torch = peer.torch
    network = Network(describe(model)).to(peer.where).train()
    images = torch.tensor(np.moveaxis(x, -1, 1)).to(peer.where).to(memory_format=torch.channels_last)
    network(images)  # gives the lazy modules their shapes
    network = network.to(memory_format=torch.channels_last)
    labels, loss = torch.tensor(y).to(peer.where), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        loss(network(images), labels).backward()
        optimizer.step()

    return step
