"""Times the algorithms of a network's convolutions on this machine; training takes the fastest from then on.

  pydtconv tune --model resnet34 --batch-size 64
  pydtconv tune --model vgg16 --image-size 224 --classes 1000 --batch-size 8 --seconds 120

Each pass of each convolution of a training step is timed by all algorithms that can do it, for the number of threads
that is set.  The results are kept in the folder that PYDTCONV_CACHE names (default: ~/.cache/pydtconv) and used where
the variant is AUTO.  `pydtconv train --tune` does the same for what it needs, before it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydtconv.cli import networks
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser

if TYPE_CHECKING:
    from pydtconv.conv.tuning import Task, Tuned

SUMMARY = "find the fastest convolution algorithms for a network on this machine"


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser)
    networks.add_shape(parser)
    parser.add_argument("--batch-size", type=int, default=64, help="images in a step (default: 64)")
    parser.add_argument("--threads", type=int, help="threads to tune for (default: as everywhere)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all of it (default: 60)")
    networks.add_workspace_limit(parser)
    parser.add_argument("--again", action="store_true", help="also time what has been timed before")


def run(args: Any) -> int:
    from pydtconv import config
    from pydtconv.conv import timings, tuning
    from pydtconv.graph import passes_of
    from pydtconv.trainers.first_use import shown

    if not args.seconds > 0:
        raise CommandError(f"--seconds: expected a number above 0, got {args.seconds}")
    networks.limit_workspace(args)
    try:
        if args.threads is not None:
            config.set_num_threads(args.threads)
        model = networks.build(args, (args.image_size, args.image_size, args.channels), args.classes)
        model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
        plan = model.plan(args.batch_size, variant="AUTO")
        tasks = passes_of(plan.steps, plan.algorithms)
        with shown(len(set(tasks)), "tuning") as progress:
            found = tuning.tune(tasks, args.seconds, config.conv_workspace_limit(), args.again, progress)
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    print("\n".join(report(tasks, found)))
    print(f"kept in {timings.path()}")
    return 0


def report(tasks: list[Task], found: Tuned) -> list[str]:
    """Lines: each pass with its fastest algorithm beside the one of the cost model, and the sums over the step."""
    from pydtconv.conv.selection import ranking

    lines = [
        f"{'pass':17} {'images':18} {'filters':16} {'stride':>6} {'times':>5}  {'fastest':15} {'by cost model':15}"
    ]
    sums = [0.0, 0.0]
    for task, seconds in sorted(found.seconds.items(), key=lambda item: -min(item[1].values()) * tasks.count(item[0])):
        p, direction = task
        best, count = min(seconds, key=seconds.__getitem__), tasks.count(task)
        guess = next((name for name in ranking(p, direction) if name in seconds), best)
        sums[0] += count * seconds[best]
        sums[1] += count * seconds[guess]
        sizes = f"{p.n}x{p.ih}x{p.iw}x{p.ci}", f"{p.kh}x{p.kw}x{p.ci // p.groups}x{p.co}"
        times = f"{1e3 * seconds[best]:8.3f} ms"
        if guess != best:
            times += f", not {1e3 * seconds[guess]:.3f}"
        lines.append(f"{direction:17} {sizes[0]:18} {sizes[1]:16} {p.sh:>6} {count:>5}  {best:15} {guess:15} {times}")
    lines.append(f"convolutions of a step: {1e3 * sums[0]:.1f} ms, by the cost model's choices {1e3 * sums[1]:.1f} ms")
    if found.left:
        lines.append(
            f"time was over before {len(found.left)} of {len(set(tasks))} passes: run it again, or use --seconds"
        )
    return lines
