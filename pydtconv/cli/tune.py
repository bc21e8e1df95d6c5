"""Times the algorithms of a network's convolutions on this machine; training takes the fastest from then on.

  pydtconv tune --model resnet34 --batch-size 64
  pydtconv tune --model vgg16 --image-size 224 --classes 1000 --batch-size 8 --seconds 120

Each pass of each convolution of a training step is timed by all algorithms that can do it, for the number of threads
that is set.  The results are kept in the folder that PYDTCONV_CACHE names (default: ~/.cache/pydtconv) and used where
the variant is AUTO.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pydtconv.cli import CommandError, networks
from pydtconv.cli.parser import Parser

if TYPE_CHECKING:
    from pydtconv.conv.tuning import Task, Tuned
    from pydtconv.graph import Plan

SUMMARY = "find the fastest convolution algorithms for a network on this machine"
_MIB = 1 << 20


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser)
    networks.add_shape(parser)
    parser.add_argument("--batch-size", type=int, default=64, help="images in a step (default: 64)")
    parser.add_argument("--threads", type=int, help="threads to tune for (default: as everywhere)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all of it (default: 60)")
    parser.add_argument("--workspace-limit", type=float, help="MiB; algorithms that need more are left out")
    parser.add_argument("--again", action="store_true", help="also time what has been timed before")


def run(args: Any) -> int:
    from tqdm import tqdm

    from pydtconv import config
    from pydtconv.conv import timings, tuning

    if not args.seconds > 0:
        raise CommandError(f"--seconds: expected a number above 0, got {args.seconds}")
    if args.workspace_limit is not None and not args.workspace_limit >= 0:
        raise CommandError(f"--workspace-limit: expected MiB of 0 or more, got {args.workspace_limit}")
    try:
        if args.threads is not None:
            config.set_num_threads(args.threads)
        model = networks.build(args, (args.image_size, args.image_size, args.channels), args.classes)
        model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
        tasks = tasks_of(model.plan(args.batch_size, variant="AUTO"))
        limit = None if args.workspace_limit is None else int(args.workspace_limit * _MIB)
        with tqdm(total=len(set(tasks)), desc="tuning", unit="pass", disable=not sys.stderr.isatty()) as bar:

            def progress(done: int, of: int, task: Task) -> None:
                bar.update(done - bar.n)

            found = tuning.tune(tasks, args.seconds, limit, args.again, progress)
            bar.update(bar.total - bar.n)
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    print("\n".join(report(tasks, found)))
    print(f"kept in {timings.path()}")
    return 0


def tasks_of(plan: Plan) -> list[Task]:
    """The passes of convolutions that a plan runs, as often as it does."""
    tasks: list[Task] = []
    for step in plan.steps:
        if step.node not in plan.algorithms or step.direction not in ("forward", "recompute", "backward"):
            continue
        op: Any = step.node.op
        p = op.problem(*(tensor.spec for tensor in step.node.inputs[:2]))
        y, dx, dw = op.passes
        if step.direction == "backward":
            tasks += [(p, name) for name, view in ((dx, step.dx[0]), (dw, step.dx[1])) if view is not None]
        else:
            tasks.append((p, y))
    return tasks


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
