"""Images cut over ranks of one thread, beside one rank of one thread: `python -m benchmarks.spatial`.

The layers of Jin, Ginsburg, Keutzer, "Spatially parallel convolutions" (2018): N images of H x H pixels with 64
channels, filters of 3 x 3 with a dilation of 1 (Table 1) or 3 (Table 2), "same".  Two such layers follow each other, so
that there is a gradient of an image, too; forward and backward are of both.  Processes train them on random images in
float32, cut along the height.  One rank with all, several with their parts, and several with all, each by itself, take
turns, step by step, in the same processes.

forward, backward: ms of the slowest rank in the median step, the exchanges among them; waiting: ms of these in which it
waited for messages.  speed: one rank's forward and backward over that of the ranks, the median over jobs; lowest,
highest: of one job.  ceiling: what the machine gives at most: the ranks with all, each by itself, at the same time, do
so many times the work of one, and exchange nothing.  of it: the speed over that.  by CPU time: the speed by the
processor time of whole steps, in which other work on the machine does not count.  memory: the largest predicted peak of
a rank over that of one rank; MiB: the largest that a rank has had resident beyond what it had before the model,
measured / predicted that over the plan's prediction.
step ms: of the whole step; simulated: the step over what `pydtconv simulate --mesh --ranks-per-host` makes of the
steps of the ranks with all, with the network --network.

N is 1 unless --images says another number.  Rows of several runs go into one CSV file in benchmarks/results/, with a
picture.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from typing import Any

from benchmarks import memory, report
from benchmarks.processes import in_own_process
from benchmarks.ranks import launcher

Result = dict[str, Any]
CHANNELS = 64
_KEY = ("D", "pixels", "N", "ranks")
#: operators of the loss, which the paper's tables do not count
_LOSS = ("elementwiseloss", "weightedmean", "portion", "weightedsum")


def made(size: int, dilation: int) -> Any:
    import pydtconv as keras
    from pydtconv import layers

    inputs = keras.Input((size, size, CHANNELS))
    y = inputs
    for _ in range(2):
        y = layers.Conv2D(CHANNELS, 3, padding="same", dilation_rate=dilation, use_bias=False)(y)
    model = keras.Model(inputs, y)
    model.compile("sgd", "mse")
    return model


def images_of(images: int, size: int) -> Any:
    import numpy as np

    return np.random.default_rng(0).standard_normal((images, size, size, CHANNELS), np.float32)


def alone(images: int, size: int, dilation: int, steps: int) -> Result:
    """Trains in this process, which is the only one."""
    from pydtconv.profiling import Profiler

    x = images_of(images, size)
    before = memory.resident("VmRSS")
    model = made(size, dilation)
    with Profiler(model, steps=steps, skip=1) as profiler:
        for _ in range(steps + 1):
            model.train_on_batch(x, x)
    plan, seconds = model.plan(images), profiler.profile.seconds
    found = split(profiler.profile.timings, plan.backward_start)
    found |= {"predicted": plan.peak_bytes / 2**20, "MiB": memory.peak() - before, "step": 1e3 * seconds}
    return found | {"cpu": 0.0, "every": total(found)}


def together(images: int, size: int, dilation: int, steps: int, network: str) -> Result | None:
    """Trains in this process, one of several; the first one has a turn alone in between.  None but in the first one."""
    from pydtconv import distribution, replica
    from pydtconv.distribution.mpi.launch import world
    from pydtconv.profiling import Profiler

    x = images_of(images, size)
    models: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        profilers = {}
        ranks = distribution.get_device_count()
        distribution.set_distribution(distribution.SpatialParallel(distribution.DeviceMesh((ranks,), ("height",))))
        here = replica.current()
        before = memory.resident("VmRSS")  # with MPI
        taken = 0.0  # what the rank holds is measured before it has whole images
        cpu: dict[str, list[float]] = {name: [] for name in ("several", "one", "every")}
        for step in range(steps + 1):
            for name in cpu:
                replica.set_current(here if name == "several" else None)
                rest(world().comm.Ibarrier())
                world().comm.Barrier()  # all begin at once: who has slept would be waited for in the first exchange
                if name == "one" and world().rank:
                    continue
                if not step:
                    models[name] = made(size, dilation)
                    profilers[name] = stack.enter_context(Profiler(models[name], steps=steps, skip=1))
                start = time.process_time()
                models[name].train_on_batch(x, x)
                cpu[name].append(1e3 * (time.process_time() - start))
                taken = taken or memory.peak() - before
    replica.set_current(here)
    plan = models["several"].plan(images)
    found = split(profilers["several"].profile.timings, plan.backward_start)
    found |= {"predicted": plan.peak_bytes / 2**20, "step": 1e3 * profilers["several"].profile.seconds}
    found["cpu"] = statistics.median(cpu["several"][1:])
    found["MiB"] = taken
    replica.set_current(None)
    whole = models["every"]._pydt_training.plan
    found["every"] = total(split(profilers["every"].profile.timings, whole.backward_start))
    found["simulated"] = simulated(models["every"], whole, profilers["every"].profile, images, ranks, network)
    replica.set_current(here)
    every = here.collected(found, "the figures of all ranks")
    if not here.is_main:
        return None
    replica.set_current(None)
    one = split(profilers["one"].profile.timings, models["one"].plan(images).backward_start)
    one |= {"step": 1e3 * profilers["one"].profile.seconds, "cpu": statistics.median(cpu["one"][1:])}
    return {"one": one, **{name: max(each[name] for each in every) for name in found}}


def rest(request: Any) -> None:
    """Leaves the core to others."""
    while not request.Test():
        time.sleep(2e-4)


def simulated(model: Any, plan: Any, profile: Any, images: int, ranks: int, network: str) -> float:
    """ms of a step of these ranks, by that of one with all images."""
    from pydtconv.simulation import Network
    from pydtconv.simulation.meshes import OneRank, predict_mesh

    one = OneRank.of(plan, profile)
    return 1e3 * predict_mesh(model, {"height": ranks}, images, one, Network.parse(network)).seconds


def split(timings: Any, start: int) -> Result:
    """ms of forward, of backward, which begins with step `start`, and of these in exchanges' waiting."""
    found = {"forward": 0.0, "backward": 0.0, "waiting": 0.0}
    for timing in timings:
        if timing.index >= 0 and timing.kind not in _LOSS:
            found["forward" if timing.index < start else "backward"] += 1e3 * timing.seconds
            if timing.direction == "wait":
                found["waiting"] += 1e3 * timing.seconds
    return found


def turn(ranks: int, *case: object) -> Result:
    launch = [] if ranks == 1 else [launcher(), "-n", str(ranks)]
    return in_own_process("benchmarks.spatial", ["--one", *case], 1, launch)


def rows_of(options: argparse.Namespace) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for dilation in options.dilations:
        for size in options.sizes:
            case = (options.images, size, dilation, options.steps, options.network)
            one = turn(1, *case)
            for ranks in options.ranks:
                rounds = [one | {"one": one}] if ranks == 1 else [turn(ranks, *case) for _ in range(options.rounds)]
                rows.append(row((dilation, size, options.images, ranks), rounds, one))
                print(", ".join(f"{key} {report.cell(rows[-1][key])}" for key in list(rows[-1])[:-4]), flush=True)
    return rows


def row(key: tuple[int, int, int, int], rounds: list[Result], one: Result) -> dict[str, object]:
    """What all rounds tell of so many ranks; one: a process that has been alone."""
    names = ("forward", "backward", "waiting", "predicted", "MiB", "step")
    found = {name: statistics.median(each[name] for each in rounds) for name in names}
    ratios = [total(each["one"]) / total(each) for each in rounds]
    ceilings = [key[-1] * total(each["one"]) / each["every"] for each in rounds]
    beside = [each["step"] / each["simulated"] for each in rounds if "simulated" in each]
    return {
        **dict(zip(_KEY, key, strict=True)),
        "forward ms": found["forward"], "backward ms": found["backward"], "waiting ms": found["waiting"],
        "speed": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios),
        "ceiling": statistics.median(ceilings), "of it": statistics.median(ratios) / statistics.median(ceilings),
        "by CPU time": 1.0 if key[-1] == 1 else statistics.median(each["one"]["cpu"] / each["cpu"] for each in rounds),
        "memory": found["predicted"] / one["predicted"], "MiB": found["MiB"],
        "measured / predicted": found["MiB"] / found["predicted"], "step ms": found["step"],
        "simulated": statistics.median(beside) if beside else None, **report.origin(),
    }  # fmt: skip


def total(found: Result) -> float:
    return float(found["forward"] + found["backward"])


def merged(name: str, rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows, and those of the CSV file that they do not replace."""
    new = {tuple(str(each[key]) for key in _KEY) for each in rows}
    old = [each for each in report.read_csv(name) if each.keys() == rows[0].keys()]
    kept = [each for each in old if tuple(str(each[key]) for key in _KEY) not in new]
    return sorted(kept + rows, key=lambda each: tuple(int(str(each[key])) for key in _KEY))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spatial", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512], help="rows and columns of an image")
    parser.add_argument("--dilations", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--images", type=int, default=1, help="images of a step (default: 1)")
    parser.add_argument("--steps", type=int, default=3, help="timed steps of a process (default: 3)")
    parser.add_argument("--rounds", type=int, default=2, help="jobs of each number of ranks (default: 2)")
    parser.add_argument("--network", default="40Gbps:10us", help="bandwidth:latency between ranks, for the simulation")
    parser.add_argument("--name", default="spatial", help="of the file in benchmarks/results/")
    return parser.parse_args()


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        from pydtconv.distribution.mpi.launch import launched

        *numbers, network = sys.argv[2:]
        images, size, dilation, steps = map(int, numbers)
        case = (images, size, dilation, steps)
        result = alone(*case) if launched()[0] == 1 else together(*case, network)
        if result is not None:
            print(json.dumps(result), flush=True)
        return
    options = parse()
    rows = rows_of(options)
    report.print_table("images cut over ranks of one thread", rows)
    every = merged(options.name, rows)
    print(report.write_csv(options.name, every))
    shown = [each for each in every if each["ranks"] != 1]
    labels = [f"{each['N']} x {each['pixels']}², D = {each['D']}, {each['ranks']} ranks" for each in shown]
    names = ("speed", "by CPU time")
    series = {name: [float(str(each[name])) for each in shown] for name in names}
    print(report.plot_bars(options.name, "forward and backward", labels, series, "speed", rows=shown))


if __name__ == "__main__":
    main()
