"""The largest batch in a given memory, and its speed: `python -m benchmarks.memory_wall --peer torch`.

The memory is that of the plain plan at a base batch (VGG19: 4, others: 16).  Each way to stay within it
(recomputation, offload layer by layer or by a schedule, offload of a split network) gets the largest multiple of that
batch whose plan fits, and trains it in a fresh process.  With --lost the multiples are not those of --factors: the
largest that fits is searched in quarters of the base batch, and of those the largest that loses no more than so many
percent of the plain plan's images/s.  The table tells images/s, what an image loses against the plain plan at the base
batch, the speed by that of offload layer by layer, the predicted seconds of a step and those that came, and predicted
and measured memory.  The plain plan is measured before and after the other ways: what they lose is told against the
mean of both, and how far both are apart beside it.  PyTorch trains the batch of the last way with hooks that write
saved tensors to the same disk.  The disk is measured first.  A CSV file and a picture go to benchmarks/results/; with
`--keep`, a run goes on where another one ended.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import memory, report
from benchmarks.networks import Case, batch_of, compiled
from benchmarks.peers.description import describe
from benchmarks.processes import Kept, in_own_process
from benchmarks.quiet import quiet

#: the base batch and the split of each network; the split part is where tensors are large
NETWORKS = {
    "vgg19": (4, "0.5:3x3"),
    "resnet50": (16, "0.25:2x2"),
    "resnet18": (16, "0.5:2x2"),
    "alexnet": (32, "0.6:2x2"),
}
WAYS = ("plain", "recompute", "layerwise", "offload", "offload+split")
#: the most times the base batch that a search goes to
MOST = 64
MIB = 1 << 20


def model_of(case: Case, split: str | None) -> Any:
    model = compiled(case)
    if split is not None:
        model.compile(model.optimizer, model.loss, split=split)
    return model


def options_of(way: str, limit: int, folder: str, split: str) -> tuple[dict[str, Any], str | None]:
    """Arguments of `plan` and `fit`, and the split."""
    options: dict[str, Any] = {} if way == "plain" else {"memory_limit": limit}
    if way != "plain" and way != "recompute":
        options["offload"] = f"layerwise:{folder}" if way == "layerwise" else folder
    return options, split if way.endswith("split") else None


def largest(sizes: list[int], fits: Callable[[int], bool]) -> int:
    """The largest of the sizes, which ascend, that fits, by bisection; 0 where none does."""
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        if fits(sizes[middle]):
            low = middle + 1
        else:
            high = middle
    return sizes[low - 1] if low else 0


def fits(case: Case, way: str, limit: int, folder: str, split: str, batch: int) -> bool:
    """Whether the plan of a batch is within the limit."""
    options, patches = options_of(way, limit, folder, split)
    try:
        model_of(case, patches).plan(batch, **options)
    except MemoryError:
        return False
    return True


def searched(base: int, fits: Callable[[int], bool], keeps_speed: Callable[[int], bool]) -> int:
    """The largest batch, in quarters of the base, that fits and keeps its speed; the base where none larger does.

    The largest that fits is found by doubling and bisection, and tried first: where it keeps its speed, all do.
    """
    most = 1
    while most < MOST and fits(2 * most * base):
        most *= 2
    unit = max(1, base // 4)
    sizes = range(base, 2 * most * base, unit)
    sizes = sizes[: sizes.index(largest(list(sizes), fits) or base) + 1]
    return sizes[-1] if keeps_speed(sizes[-1]) else largest(list(sizes[:-1]), keeps_speed) or base


def train(case: Case, way: str, limit: int, folder: str, split: str, steps: int) -> dict[str, Any]:
    """Trains in this process: seconds of each step, its plan's prediction, and the peak of memory.

    The first step is not timed.  With offload the first steps are measured, and those of the plan that is made anew
    with their times count.
    """
    import pydtconv as keras
    from pydtconv.graph import Executor
    from pydtconv.graph.runtime.executor import TIMED

    options, patches = options_of(way, limit, folder, split)
    model = model_of(case, patches)
    x, y = batch_of(case, model)
    before = memory.resident("VmRSS")
    seconds: dict[Any, list[float]] = {}
    plain_run = Executor.run

    def run(self: Executor, inputs: Any) -> Any:
        with quiet():
            start = time.perf_counter()
            found = plain_run(self, inputs)
            seconds.setdefault(self.plan, []).append(time.perf_counter() - start)
        return found

    class Enough(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            *_, last = seconds.values()
            planned = len(seconds) > 1 or not way.startswith("offload") or model._pydt_steps._planned_anew
            if planned and len(last) >= steps + (len(seconds) == 1):
                model.stop_training = True

    Executor.run = run  # type: ignore[method-assign]
    try:
        epochs = TIMED + 2 + 2 * steps
        model.fit(x, y, batch_size=case.batch, epochs=epochs, verbose=0, callbacks=[Enough()], **options)
    finally:
        Executor.run = plain_run  # type: ignore[method-assign]
    plan, last = next(reversed(seconds.items()))
    told: dict[str, Any] = {"seconds": last[len(seconds) == 1 :], "peak MiB": memory.peak(), "before MiB": before}
    told["predicted MiB"] = plan.peak_bytes / MIB
    told["variables MiB"] = plan.parameter_bytes / MIB
    told["recomputed"] = len(plan.recomputed)
    if plan.offloaded is not None:
        told["first predicted s"] = next(iter(seconds)).offloaded.seconds
        told["predicted s"] = plan.offloaded.seconds
        told["waiting s"] = plan.offloaded.waited
        told["offloaded MiB"] = plan.offloaded.scratch_bytes / MIB
        told["disk"] = [plan.offloaded.disk.write / 1e9, plan.offloaded.disk.read / 1e9]
    return told


def measure(network: str, options: argparse.Namespace, kept: Kept) -> list[dict[str, Any]]:
    """A row for each way."""
    base, split = NETWORKS[network]
    base, split = options.batch or base, options.split or split
    case = Case(network, options.size, base)
    head = f"{network} {options.size} {base}"
    limit = kept.get(f"{head} limit", lambda: compiled(case).plan(base).peak_bytes)[0]
    rows: list[dict[str, Any]] = []
    for way in options.ways:
        name = f"{head} {way} {split if way.endswith('split') else ''}"

        def trained(batch: int, name: str = name, way: str = way) -> Any:
            words = ["--one", network, options.size, batch, way, limit, options.folder, split, options.steps]
            run = functools.partial(in_own_process, "benchmarks.memory_wall", words, options.threads)
            return kept.get(f"{name} {batch}", run)[0]

        def keeps_speed(batch: int, trained: Callable[[int], Any] = trained) -> bool:
            rate = batch / statistics.median(trained(batch)["seconds"])
            return rate >= rows[0]["images/s"] * (1 - options.lost / 100)

        def batch_of_way(way: str = way, keeps_speed: Callable[[int], bool] = keeps_speed) -> int:
            within = functools.partial(fits, case, way, limit, options.folder, split)
            if way == "plain":
                return base
            if options.lost is not None:
                return searched(base, within, keeps_speed)
            return largest(sorted({int(base * factor) for factor in options.factors}), within)

        batch = kept.get(f"{name} batch {options.lost or ''}".rstrip(), batch_of_way)[0]
        row: dict[str, Any] = {"network": network, "images": options.size, "way": way, "batch": batch or None}
        rows.append(row)
        if not batch:
            continue
        told = trained(batch)
        seconds = statistics.median(told["seconds"])
        grown = told["peak MiB"] - told["before MiB"] + told["variables MiB"]
        row |= {
            "split": split if way.endswith("split") else "",
            "times the batch": batch / base,
            "images/s": batch / seconds,
            "lost %": None,
            "times layerwise": None,
            "predicted s": told.get("predicted s"),
            "by cost model s": told.get("first predicted s"),
            "s": seconds,
            "waiting s": told.get("waiting s"),
            "limit MiB": limit / MIB,
            "predicted MiB": told["predicted MiB"],
            "step's MiB": grown,
            "process MiB": told["peak MiB"],
            "offloaded MiB": told.get("offloaded MiB"),
            "disk GB/s": " ".join(f"{rate:.2f}" for rate in told.get("disk", ())),
        }
        print(row, flush=True)
    if options.peer:
        batch = max(row["batch"] or 0 for row in rows)
        told = kept.get(f"{head} torch {batch}", lambda: peer(case, batch, options))[0]
        rows.append(peer_row(case, batch, told))
        print(rows[-1], flush=True)
    if rows[0]["way"] == "plain":
        words = ["--one", network, options.size, base, "plain", limit, options.folder, split, options.steps]
        again = functools.partial(in_own_process, "benchmarks.memory_wall", words, options.threads)
        told = kept.get(f"{head} plain again", again)[0]
        compare(rows, base / statistics.median(told["seconds"]))
    return rows


def compare(rows: list[dict[str, Any]], again: float) -> None:
    """Fills in what each row loses against the plain plan, which stands first, and its images/s measured once more."""
    first = rows[0]["images/s"]
    mean = (first + again) / 2
    layerwise = next((row["images/s"] for row in rows if row["way"] == "layerwise" and row["batch"]), None)
    for row in rows:
        if row["batch"]:
            row["times layerwise"] = layerwise and row["images/s"] / layerwise
            row["lost %"] = 100 * (1 - row["images/s"] / mean)
            row["plain apart %"] = 100 * abs(first - again) / mean


def peer(case: Case, batch: int, options: argparse.Namespace) -> dict[str, Any]:
    """PyTorch at this batch, with saved tensors on the same disk."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.json"
        file.write_text(json.dumps(describe(compiled(case))))
        words = [file, case.size, batch, options.steps, options.folder]
        return in_own_process("benchmarks.peers.torch_offload", words, options.threads)


def peer_row(case: Case, batch: int, told: dict[str, Any]) -> dict[str, Any]:
    seconds = statistics.median(told["seconds"])
    return {
        "network": case.network,
        "images": case.size,
        "way": told["peer"],
        "batch": batch,
        "times the batch": batch / case.batch,
        "images/s": batch / seconds,
        "lost %": None,
        "s": seconds,
        "process MiB": told["peak MiB"],
    }


def measured_disk(folder: str) -> list[float]:
    """Bytes per second written, read, and the share of both that is left together; plans reckon with them."""
    from pydtconv.graph import disk_speed

    with quiet():
        disk = disk_speed.measured_anew(folder)
    return [disk.write, disk.read, disk.together]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--size", type=int, default=224, help="rows and columns of an image")
    parser.add_argument("--batch", type=int, help="the base batch (default: 4 for VGG19, 32 for AlexNet, else 16)")
    parser.add_argument("--factors", type=float, nargs="+", default=[1, 1.25, 1.5, 2, 4, 6, 8], help="multiples of it")
    parser.add_argument("--lost", type=float, help="%% of images/s: search the largest batch that loses no more")
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--split", help="default: each network's own")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="on the disk to offload to")
    parser.add_argument("--steps", type=int, default=3, help="steps that are timed")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--keep", type=Path, help="a JSON file of what is measured already")
    parser.add_argument("--peer", choices=("torch",))
    parser.add_argument("--one", nargs=8, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.lost is not None and options.ways[0] != "plain":
        parser.error(f"--lost: expected --ways that begin with plain, got {' '.join(options.ways)}")
    if options.one:
        network, size, batch, way, limit, folder, split, steps = options.one
        case = Case(network, int(size), int(batch))
        print(json.dumps(train(case, way, int(limit), folder, split, int(steps))))
        return
    kept = Kept(options.keep)
    write, read, together = kept.get("disk", lambda: measured_disk(options.folder))[0]
    print(f"disk: {write / 1e9:.2f} GB/s written, {read / 1e9:.2f} read, {together:.0%} of both together", flush=True)
    rows = [row for network in options.networks for row in measure(network, options, kept)]
    columns = max(rows, key=len)
    rows = [{name: row.get(name) for name in columns} for row in rows]
    report.print_table("Largest batch in the memory of the plain plan, and its speed", rows)
    print(f"\n{report.write_csv('memory_wall', rows)}")
    shown = [row for row in rows if row["batch"]]
    labels = [f"{row['network']} {row['way']}" for row in shown]
    series = {
        "times the batch": [row["times the batch"] for row in shown],
        "images/s, of the plain plan's": [1 - (row["lost %"] or 0) / 100 for row in shown],
    }
    title = "Largest batch within the memory of the plain plan, and its speed"
    report.plot_bars("memory_wall", title, labels, series, "times the plain plan", top=1.0, rows=shown)


if __name__ == "__main__":
    main()
