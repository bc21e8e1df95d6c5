"""Memory of a rank of a mesh over that of one process: `python -m benchmarks.mesh_memory`.

Both train the same network on the same global batch by SGD with momentum in float32.  All ranks run on one host, on one
thread each.  By default the plans of ranks are made here, and nothing runs.  With --measure they run, under mpiexec:

- predicted: MiB of the plan of the rank with the largest peak, and of what its steps are bound to; over one: over
  those of one process.
- measured: MiB of the rank with the largest peak in the second and third step, beyond what it had when its first step
  began, without the weights.  What ranks share counts for each by its part (the proportional set size).  Over what the
  plans say: of all ranks together.

A mesh such as height=2/fc1,fc2 also cuts the columns of these dense layers, in ranks with weights of their own.

--detail shows what the plans are the sums of, and what the arena has at its peak.  A CSV file goes to
benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks import memory, report
from benchmarks.networks import Case, batch_of, compiled
from benchmarks.processes import Kept, in_own_process
from benchmarks.ranks import launcher

MIB = 1 << 20
ALONE = "alone"
MESHES = ("height=2", "height=2,width=2", "height=4", "batch=2,height=2")
#: networks of the zoo that have no images of two axes, or no convolutions to speak of
OTHERS = ("cosmoflow", "mlp", "resnet1d", "unet3d", "vit", "vits16", "vitti16")
#: rows and columns of images for networks that need others than --size
SIZES = {"unet": 256}


#: those of what runs, which others leave empty
COLUMNS = ("network", "pixels", "batch", "mesh", "predicted MiB", "over one", "measured MiB", "measured over one",
           "measured / predicted")  # fmt: skip


def parsed(mesh: str) -> dict[str, int]:
    parts = [] if mesh == ALONE else mesh.partition("/")[0].split(",")
    return {name: int(extent) for name, extent in (part.split("=") for part in parts)}


def columns(mesh: str) -> list[str]:
    """The dense layers whose columns are cut."""
    return [name for name in mesh.partition("/")[2].split(",") if name]


def convolutional() -> list[str]:
    from pydtconv import applications

    return [name for name in applications.names() if name not in OTHERS]


def planned(case: Case, mesh: str) -> dict[str, float]:
    """MiB of the parts of a rank's plan, in this process."""
    from pydtconv import config
    from pydtconv.simulation.meshes import as_rank

    config.set_num_threads(1)
    model, shape = compiled(case), parsed(mesh)
    with as_rank(shape, math.prod(shape.values()) // 2, bool(shape), columns(mesh)):
        plan = model.plan(-(-case.batch // shape.get("batch", 1)))
    peak = plan.peak_step()
    found = {f"arena: {kind}": 0.0 for kind in ("input", "activation", "gradient", "workspace", "saved", "recomputed")}
    for storage in plan.live_at(peak):
        found[f"arena: {storage.kind}"] += storage.nbytes / MIB
    parts = {name: nbytes / MIB for name, nbytes in plan.parts().items()}
    return {**parts, **found}


def predicted(case: Case, meshes: list[str]) -> dict[str, float]:
    """MiB of the largest rank's plan, by mesh, in this process."""
    from pydtconv import config
    from pydtconv.simulation.meshes import peak_bytes

    config.set_num_threads(1)
    model = compiled(case)
    return {
        mesh: peak_bytes(model, parsed(mesh), case.batch, mesh != ALONE, columns(mesh), bound=True) / MIB
        for mesh in meshes
    }


def trained(case: Case, mesh: str) -> list[dict[str, float]]:
    """Trains in this process, one of those of a mesh; the figures of all."""
    from pydtconv import callbacks, distribution, replica

    shape = parsed(mesh)
    if shape:
        devices = distribution.DeviceMesh(list(shape.values()), list(shape))
        distribution.set_distribution(distribution.SpatialParallel(devices, columns=columns(mesh)))
    model = compiled(case)
    x, y = batch_of(case, model)
    seen: list[float] = []

    def end(step: int, logs: Any) -> None:
        if not step:
            memory.forget_peak()

    def begin(step: int, logs: Any) -> None:
        if not step:
            for slot in model._pydt_training.memory.store.slots.values():
                memory.give_back(slot)  # of which the system may have some pages already
            seen.append(memory.resident("VmRSS") - sum(map(held, model.variables)) / MIB)

    listener = callbacks.LambdaCallback(on_train_batch_begin=begin, on_train_batch_end=end)
    model.fit(_repeated(x), _repeated(y), batch_size=case.batch, verbose=0, shuffle=False, callbacks=[listener])
    measured = memory.peak() - memory.resident("RssShmem") + memory.proportional_shared()
    (before,) = seen
    (step,) = model._pydt_steps._steps.values()
    plan = step.executor.plan
    found = {"predicted": (plan.peak_bytes + plan.bound_bytes) / MIB, "measured": measured - before}
    return replica.current().collected(found, "the figures of all ranks")


def held(variable: Any) -> int:
    """Bytes of a variable here; before the first step those of which a rank is to keep some columns are whole, too."""
    return variable.host_array.nbytes + (0 if variable.cut is None else variable.cut.whole.nbytes)


def _repeated(array: Any) -> Any:
    """Three batches, which take the memory of one."""
    import numpy as np

    return np.concatenate([array] * 3)


def run(case: Case, mesh: str) -> dict[str, float]:
    """The largest of all ranks, and what they have measured together over what their plans say, in fresh processes."""
    ranks = math.prod(parsed(mesh).values())
    launch = [] if mesh == ALONE else [launcher(), "-n", str(ranks)]
    words = ["--one", *case, mesh]
    every = in_own_process("benchmarks.mesh_memory", words, 1, launch, env={"PYDTCONV_STALL_TIMEOUT": "600"})["ranks"]
    together = sum(each["measured"] for each in every) / sum(each["predicted"] for each in every)
    return {"measured": max(each["measured"] for each in every), "together": together}


def rows_of(case: Case, options: argparse.Namespace, kept: Kept) -> list[dict[str, object]]:
    meshes = [ALONE, *options.meshes]
    rows: list[dict[str, object]] = []
    plans, _ = kept.get(f"plans of {case} {case.batch} {' '.join(meshes)}", lambda: predicted(case, meshes))
    for mesh in meshes:
        row: dict[str, object] = {"network": case.network, "pixels": case.size, "batch": case.batch, "mesh": mesh}
        row |= {"predicted MiB": plans[mesh], "over one": plans[mesh] / plans[ALONE]}
        if options.measure is not None and (not options.measure or case.network in options.measure):
            found, _ = kept.get(f"{case} {case.batch} {mesh}", lambda mesh=mesh: run(case, mesh))
            one = rows[0]["measured MiB"] if rows else found["measured"]
            row |= {"measured MiB": found["measured"], "measured over one": found["measured"] / float(one)}  # type: ignore[arg-type]
            row |= {"measured / predicted": found["together"]}
        rows.append(dict.fromkeys(COLUMNS) | row)
        print(", ".join(f"{key} {report.cell(value)}" for key, value in row.items()), flush=True)
    return rows


def summary(rows: list[dict[str, object]]) -> list[str]:
    """The geometric mean and the largest of each mesh, over one process."""
    lines = []
    for mesh in dict.fromkeys(str(row["mesh"]) for row in rows if row["mesh"] != ALONE):
        of_mesh = [row for row in rows if row["mesh"] == mesh]
        for column in ("over one", "measured over one"):
            ratios = [float(row[column]) for row in of_mesh if row.get(column) is not None]  # type: ignore[arg-type]
            if ratios:
                mean, most = statistics.geometric_mean(ratios), max(ratios)
                lines.append(f"{mesh}: {column}: {mean:.2f} in geometric mean, at most {most:.2f}")
    off = [abs(float(row["measured / predicted"]) - 1) for row in rows if row.get("measured / predicted")]  # type: ignore[arg-type]
    return [*lines, *([f"measured / predicted: off by at most {max(off):.1%}"] if off else [])]


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, mesh = sys.argv[2:]
        every = trained(Case(network, int(size), int(batch)), mesh)
        from pydtconv import replica

        if replica.current().is_main:
            print(json.dumps({"ranks": every}), flush=True)
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mesh_memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--networks", nargs="+", help="names of the zoo (default: all that are convolutional)")
    parser.add_argument("--size", type=int, help="rows and columns of an image (default: 224, 256 for unet)")
    parser.add_argument("--batch", type=int, default=4, help="images of a step of all ranks (default: 4)")
    parser.add_argument("--meshes", nargs="+", default=MESHES)
    parser.add_argument("--measure", nargs="*", help="train these networks, or all of them, under mpiexec")
    parser.add_argument("--detail", action="store_true", help="show the parts of the plans, and nothing else")
    parser.add_argument("--keep", type=Path, help="a file of what was found: another run goes on with it")
    parser.add_argument("--name", default="mesh_memory", help="of the file in benchmarks/results/")
    options = parser.parse_args()
    cases = [
        Case(name, options.size or SIZES.get(name, 224), options.batch) for name in options.networks or convolutional()
    ]
    if options.detail:
        parts = [
            {"network": str(case), "mesh": mesh, **planned(case, mesh)}
            for case in cases
            for mesh in (ALONE, *options.meshes)
        ]
        report.print_table("MiB of a rank's plan", parts)
        return
    kept = Kept(options.keep)
    rows: list[dict[str, object]] = []
    for case in cases:
        rows += rows_of(case, options, kept)
        report.write_csv(options.name, rows)
    report.print_table("memory of a rank over that of one process", rows)
    print("\n".join(summary(rows)))
    print(report.write_csv(options.name, rows))


if __name__ == "__main__":
    main()
