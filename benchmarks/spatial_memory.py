"""A U-Net whose image is too large for one process: `python -m benchmarks.spatial_memory`.

One process plans a step of one image within --limit MiB, and is told the least that it needs; by default the limit is
four fifths of that.  Then four ranks of one thread train within it, each of which reads its part of the image from a
file; and one process without a limit trains the same, for its losses.  Columns:

- predicted, measured MiB: of the rank with the largest peak: the plan's, and the largest that it had resident beyond
  what it had when its first step began, with the model and a batch.
- seconds: the median step of the slowest rank; losses: of all steps.

--throughput compares two ranks that share one image after the other with two that have an image each, instead: images/s
of steps of two images, the two ways in turns.  "each": two processes train both images, each by itself, which is what
the machine gives to both at the same time; simulated: a step over what `pydtconv simulate --ranks-per-host 2` makes of
theirs.  CSV files go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import memory, report
from benchmarks.processes import in_own_process
from benchmarks.ranks import launcher

MIB = 1 << 20
CLASSES = 3
#: no mesh: one process, and two that do not know of each other
ALONE, EACH = "alone", "each"


def made(size: int, filters: int) -> Any:
    import pydtconv as keras
    from pydtconv import applications

    keras.utils.set_random_seed(3)
    model = applications.UNet((size, size, 1), CLASSES, filters=filters)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "sparse_categorical_crossentropy")
    return model


def write(folder: Path, size: int, images: int) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.standard_normal((images, size, size, 1), np.float32))
    np.save(folder / "y.npy", rng.integers(0, CLASSES, (images, size, size)).astype("int32"))


def put_in_force(mesh: str) -> None:
    from pydtconv import distribution

    if mesh not in (ALONE, EACH):
        parts = dict(part.split("=") for part in mesh.split(","))
        shape = distribution.DeviceMesh([int(extent) for extent in parts.values()], list(parts))
        distribution.set_distribution(distribution.SpatialParallel(shape))


def trained(mesh: str, size: int, filters: int, images: int, steps: int, limit: int, folder: str) -> None:
    """Trains in this process, one of those of a mesh; the first one prints what all have found.  limit: 0 for none."""
    from pydtconv import callbacks, replica, utils
    from pydtconv.profiling import Profiler

    put_in_force(mesh)
    model = made(size, filters)
    data = utils.WindowedArrays(Path(folder) / "x.npy", Path(folder) / "y.npy", images)
    times: list[float] = []
    losses: list[float] = []

    def end(batch: int, logs: Any = None) -> None:
        times.append(time.perf_counter())
        losses.append(float((logs or {})["loss"]))

    before: list[float] = []
    clock = callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: before.append(memory.resident("VmRSS")), on_train_batch_end=end
    )
    listeners: list[Any] = [clock]
    profiler = Profiler(steps=steps, skip=1)
    if mesh == EACH:
        listeners.append(profiler)
        model._pydt_training.memory.keeps_gradients = True  # as where they are reduced
    model.fit(data, epochs=steps + 1, verbose=0, callbacks=listeners, shuffle=False, memory_limit=limit or None)
    measured = memory.peak() - before[0]
    (step,) = model._pydt_steps._steps.values()
    found = {
        "predicted": step.executor.plan.peak_bytes / MIB,
        "measured": measured,
        "seconds": statistics.median(b - a for a, b in itertools.pairwise(times)),
        "losses": losses,
    }
    if mesh == EACH:
        found |= simulated(model, step.executor.plan, data.batch_size, profiler.profile)
    every = replica.current().collected(found, "the figures of all ranks")
    if replica.current().is_main:
        print(json.dumps({"ranks": every}), flush=True)


def simulated(model: Any, plan: Any, images: int, profile: Any) -> dict[str, float]:
    """Seconds of steps on meshes of two ranks, from those of one rank."""
    from pydtconv.simulation import Network
    from pydtconv.simulation.meshes import OneRank, predict_mesh

    link = Network.parse("40Gbps:10us")
    meshes = [{"height": 2}, {"width": 2}, *([{"batch": 2}] if images > 1 else [])]
    one = OneRank.of(plan, profile)
    found = [predict_mesh(model, mesh, images, one, link) for mesh in meshes]
    return {each.mesh: each.seconds for each in found}


def least(size: int, filters: int) -> tuple[float, float, str]:
    """MiB of the plan of one process without a limit, of its smallest one, and what an error says of a limit below."""
    from pydtconv import config

    config.set_num_threads(1)
    model = made(size, filters)
    try:
        model.plan(1, memory_limit=MIB)
    except MemoryError as error:
        smallest: int = error.smallest_bytes  # type: ignore[attr-defined]
    limit = int(0.8 * smallest)
    try:
        model.plan(1, memory_limit=limit)
    except MemoryError as error:
        return model.plan(1).peak_bytes / MIB, smallest / MIB, str(error)
    raise SystemExit("memory_limit: expected an error")


def turn(mesh: str, *words: object) -> list[dict[str, Any]]:
    ranks = 2 if mesh == EACH else 1
    for part in mesh.split(",") if mesh not in (ALONE, EACH) else ():
        ranks *= int(part.partition("=")[2])
    launch = [] if mesh == ALONE else [launcher(), "-n", str(ranks)]
    found: list[dict[str, Any]] = in_own_process("benchmarks.spatial_memory", ["--one", mesh, *words], 1, launch)[
        "ranks"
    ]
    return found


def row(mesh: str, limit: int, ranks: list[dict[str, Any]]) -> dict[str, object]:
    largest = max(ranks, key=lambda each: float(each["measured"]))
    return {
        "mesh": mesh, "limit MiB": limit / MIB if limit else "none", "predicted MiB": largest["predicted"],
        "measured MiB": largest["measured"], "measured / predicted": largest["measured"] / largest["predicted"],
        "seconds": max(each["seconds"] for each in ranks),
        "losses": " ".join(f"{loss:.6f}" for loss in ranks[0]["losses"]),
    }  # fmt: skip


def large_image(options: argparse.Namespace) -> None:
    size, filters = options.size, options.filters
    plain, smallest, told = least(size, filters)
    limit = int(options.limit * MIB) if options.limit else int(0.8 * smallest * MIB)
    print(f"one process: {plain:.0f} MiB, at least {smallest:.0f} MiB\nMemoryLimitError: {told}", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), size, 1)
        for mesh in (*options.meshes, ALONE):
            most = 0 if mesh == ALONE else limit
            rows.append(row(mesh, most, turn(mesh, size, filters, 1, options.steps, most, folder)))
            print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
    report.print_table(f"one image of {size} x {size}, U-Net of {filters} filters", rows)
    print(report.write_csv(options.name, rows))


def throughput(options: argparse.Namespace) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.size, 2)
        words = (options.size, options.filters, 2, options.steps, 0, folder)
        ways = (ALONE, EACH, "batch=2", "height=2", "width=2")
        rounds = [{mesh: turn(mesh, *words) for mesh in ways} for _ in range(options.rounds)]
    seconds = [{mesh: max(each["seconds"] for each in found[mesh]) for mesh in found} for found in rounds]
    for mesh in seconds[0]:
        ratios = [(2 if mesh == EACH else 1) * each["batch=2"] / each[mesh] for each in seconds]
        rows.append({
            "mesh": mesh, "pixels": options.size, "filters": options.filters,
            "images/s": (4 if mesh == EACH else 2) / statistics.median(each[mesh] for each in seconds),
            "to batch=2": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios),
            "simulated": None if mesh in (ALONE, EACH) else statistics.median(
                each[mesh] / found[EACH][0][mesh] for each, found in zip(seconds, rounds, strict=True)
            ),
            "predicted MiB": max(each["predicted"] for each in rounds[0][mesh]),
            "measured MiB": max(each["measured"] for each in rounds[0][mesh]),
        })  # fmt: skip
    report.print_table("U-Net, steps of two images on two ranks", rows)
    print(report.write_csv(f"{options.name}_throughput", rows))


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        mesh, *numbers, folder = sys.argv[2:]
        size, filters, images, steps, limit = map(int, numbers)
        trained(mesh, size, filters, images, steps, limit, folder)
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spatial_memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--throughput", action="store_true")
    parser.add_argument("--size", type=int, help="rows and columns (default: 2048, 512 for --throughput)")
    parser.add_argument("--filters", type=int, default=8, help="of the first level (default: 8)")
    parser.add_argument("--limit", type=float, help="MiB that a process may take")
    parser.add_argument("--meshes", nargs="+", default=["height=4", "height=2,width=2"])
    parser.add_argument("--steps", type=int, default=2, help="timed steps (default: 2)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of --throughput (default: 3)")
    parser.add_argument("--name", default="spatial_memory", help="of the files in benchmarks/results/")
    options = parser.parse_args()
    options.size = options.size or (512 if options.throughput else 2048)
    throughput(options) if options.throughput else large_image(options)


if __name__ == "__main__":
    main()
