"""Times the algorithms of a network's convolutions on this machine; training takes the fastest from then on.

  pydtconv tune --model resnet34 --batch-size 64
  pydtconv tune --model vgg16 --image-size 224 --classes 1000 --batch-size 8 --seconds 120

Each pass of each convolution of a training step is timed by all algorithms that can do it, for the number of threads
that is set.  The results are kept in the folder that PYDTCONV_CACHE names (default: ~/.cache/pydtconv) and used where
the variant is AUTO.  `pydtconv train --tune` does the same for what it needs, before it begins.  With --offload FOLDER
the disk of that folder is timed, too, for plans that offload to it.

  pydtconv tune --model resnet20 --all-bases

times convolutions in the Fourier domain with each number of points from a padded image's n to the next power of two, as
fbfft's authors do; without it, with the four bases that the cost model puts first.

  pydtconv tune --model resnet20 --device gpu

times those of a GPU: im2col, and several strategies of convolution in the Fourier domain.

  pydtconv tune --calibrate

fits the cost model to this machine instead, in some seconds for each dtype (--dtype names one): what is chosen where
nothing has been timed, and what plans expect steps to take.  It belongs to the number of threads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pydtconv.cli import networks, training
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, whole

if TYPE_CHECKING:
    from pydtconv.conv.tuning import Bench, Task, Tuned

SUMMARY = "find the fastest convolution algorithms for a network on this machine"


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser, required=False)
    networks.add_precision(parser)
    networks.add_shape(parser)
    parser.add_argument("--batch-size", type=whole(1), help="images in a step (default: 64)")
    networks.add_device(parser)
    parser.add_argument("--threads", type=int, help="threads to tune for (default: as everywhere)")
    parser.add_argument("--seconds", type=float, help="time for all of it (default: 60)")
    networks.add_workspace_limit(parser)
    parser.add_argument("--offload", metavar="FOLDER", help="also time the disk of this folder")
    parser.add_argument("--calibrate", action="store_true", help="fit the cost model to this machine; needs no --model")
    parser.add_argument("--again", action="store_true", help="also time what has been timed before")
    parser.add_argument("--all-bases", action="store_true", help="also time fft with all bases that hold an image")


def run(args: Any) -> int:
    from pydtconv import config, devices
    from pydtconv.conv import timings, tuning
    from pydtconv.engine.first_use import bench_of, shown
    from pydtconv.graph import disk_speed, passes_of

    if args.calibrate:
        return _calibrate(args)
    seconds = 60.0 if args.seconds is None else args.seconds
    if not seconds > 0:
        raise CommandError(f"--seconds: expected a number above 0, got {args.seconds}")
    if args.model is None:
        raise CommandError("--model: expected a network, or --calibrate, which needs none")
    networks.prepare(args)
    networks.limit_workspace(args)
    networks.use_device(args)
    bench = bench_of(devices.get(config.device()))
    if args.all_bases:
        if bench.device != tuning.Bench.device:
            raise CommandError(f"--all-bases: expected --device cpu, got {bench.device}, which has strategies instead")
        bench = tuning.Bench(all_bases=True)
    try:
        if args.threads is not None:
            config.set_num_threads(args.threads)
        disk = None if args.offload is None else disk_speed.measured_anew(args.offload)
        shape = networks.shape_of(args)
        network = networks.build(args, shape, args.classes)
        model = training.compiled(network, shape, training.optimizer(training.DEFAULT_OPTIMIZER, 0.01))
        plan = model.plan(args.batch_size or 64, variant="AUTO")
        tasks = passes_of(plan.steps, plan.algorithms)
        with shown(len(set(tasks)), "tuning") as progress:
            found = tuning.tune(tasks, seconds, config.conv_workspace_limit(), args.again, progress, bench=bench)
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    print("\n".join(report(tasks, found, bench)))
    print(f"kept in {timings.path()}")
    if disk is not None:
        rates = f"{disk.write / 1e9:.2f} GB/s written, {disk.read / 1e9:.2f} read, {disk.together:.0%} of both together"
        print(f"disk of {args.offload}: {rates}; kept in {disk_speed.DISKS.path}")
    return 0


def _calibrate(args: Any) -> int:
    from pydtconv import config
    from pydtconv.conv import calibrated, calibration
    from pydtconv.engine.first_use import shown

    if args.model is not None:
        raise CommandError(f"--calibrate: expected no --model, which it does not look at; got {args.model}")
    shape = ("image_size", "channels", "classes", "batch_size")
    others = ("device", "workspace_limit", "matmul_precision", "seconds", "offload", "again", "all_bases")
    networks.refuse(args, (*shape, *others), "with --calibrate, which is of this machine's products")
    names = calibrated.DTYPES if args.dtype is None else (args.dtype.removeprefix("mixed_"),)
    if names[0] not in calibrated.DTYPES:
        expected = ", ".join([*calibrated.DTYPES, "mixed_bfloat16"])
        raise CommandError(f"--dtype: expected one of {expected}, got {args.dtype!r}")
    try:
        if args.threads is not None:
            config.set_num_threads(args.threads)
        for name in names:
            with shown(calibration.ROUNDS + 1, f"calibrating {name}") as progress:
                calibration.calibrate(name, progress=partial(_shown_round, progress))
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    print("\n".join(calibrated.lines()))
    print(f"kept in {calibrated.FIGURES.path}")
    return 0


def _shown_round(progress: Any, done: int, of: int) -> None:
    progress(done, of, None)


def report(tasks: list[Task], found: Tuned, bench: Bench) -> list[str]:
    """Lines: each pass with its fastest algorithm beside the one of the cost model, and the sums over the step."""
    names = {name for seconds in found.seconds.values() for name in seconds}
    wide = max([15, *map(len, names)])
    head = f"{'pass':17} {'images':18} {'filters':16} {'stride':>6} {'times':>5}  "
    lines = [f"{head}{'fastest':{wide}} {'by cost model':{wide}}"]
    sums = [0.0, 0.0]
    for task, seconds in sorted(found.seconds.items(), key=lambda item: -min(item[1].values()) * tasks.count(item[0])):
        p, direction = task
        best, count = min(seconds, key=seconds.__getitem__), tasks.count(task)
        guess = next((name for name in bench.names(p, direction) if name in seconds), best)
        sums[0] += count * seconds[best]
        sums[1] += count * seconds[guess]
        sizes = "x".join(map(str, p.x_shape)), "x".join(map(str, p.w_shape))
        times = f"{1e3 * seconds[best]:8.3f} ms"
        if guess != best:
            times += f", not {1e3 * seconds[guess]:.3f}"
        what = f"{direction:17} {sizes[0]:18} {sizes[1]:16} {p.strides[0]:>6} {count:>5}  "
        lines.append(f"{what}{best:{wide}} {guess:{wide}} {times}")
    lines.append(f"convolutions of a step: {1e3 * sums[0]:.1f} ms, by the cost model's choices {1e3 * sums[1]:.1f} ms")
    if found.left:
        lines.append(
            f"time was over before {len(found.left)} of {len(set(tasks))} passes: run it again, or use --seconds"
        )
    return lines
