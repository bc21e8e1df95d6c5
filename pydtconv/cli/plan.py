"""Shows the plan of a step of `pydtconv train`: operators, algorithms of convolutions, bytes, and the peak of memory.

pydtconv plan --model resnet34 --batch-size 64 --variant CGT --picture memory.png
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from pydtconv import replica
from pydtconv.cli import finetuning, networks, searches, training
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, whole

SUMMARY = "show what a training step of a network runs, and its memory"


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser)
    networks.add_shape(parser)
    parser.add_argument("--batch-size", type=whole(1), default=64, help="images in a step (default: 64)")
    training.add_arguments(parser)
    finetuning.add_freeze(parser)
    parser.add_argument(
        "--offload",
        metavar="FOLDER",
        nargs="?",
        const=True,
        help="plan with a disk: a folder's, or one of 2 GB/s; on a GPU with pinned memory",
    )
    parser.add_argument(
        "--largest-batch", action="store_true", help="print the largest batch within --memory-limit, and no plan"
    )
    parser.add_argument(
        "--shard",
        choices=("optimizer", "gradients"),
        help="plan a rank that keeps its part alone of the optimizer's state, or of the gradients, too; with --ranks",
    )
    parser.add_argument("--ranks", type=whole(1), help="with --shard: among so many; --batch-size is that of one")
    parser.add_argument("--picture", help="draw memory over the step into this file")
    parser.add_argument(
        "--dump", metavar="FOLDER", help="write the graph after each pass into this folder, as text and SVG"
    )


def run(args: Any) -> int:
    from pydtconv.engine import offloading, room

    networks.check_picture("--picture", args.picture)
    if (args.shard is None) != (args.ranks is None):
        raise CommandError(f"expected --shard and --ranks together, got --shard {args.shard}, --ranks {args.ranks}")
    if args.largest_batch:
        searches.check_limit("--largest-batch", args)
        networks.refuse(args, ("picture", "dump"), "with --largest-batch, which shows no plan")
    networks.prepare(args)
    training.prepare(args)
    finetuning.share_of(args.freeze)
    try:
        offloading.of_plan(args.offload, networks.limit(args))
    except (ValueError, OSError) as error:
        raise CommandError(str(error)) from None
    shape, split = networks.shape_of(args), networks.split(args)
    network = networks.build(args, shape, args.classes)
    finetuning.freeze(network, args.freeze)
    model = training.compiled(network, shape, training.optimizer(args.optimizer, 0.01, ema=args.ema), args, split)
    if args.largest_batch:
        searches.find_batch(model, networks.limit(args), args.offload)
        return 0
    shared = replica.one_of(args.ranks, shard=args.shard) if args.shard else nullcontext()
    try:
        with shared:
            plan = model.plan(args.batch_size, memory_limit=networks.limit(args), dump=args.dump, offload=args.offload)
        print(plan)
        if args.memory_limit is not None:
            print(f"{'--memory-limit':>24}: {args.memory_limit:10.2f} MiB")
        if told := room.lacks(plan, model._pydt_training.memory):
            print(told)
        if model.split is not None:
            print(model.split.describe(model))
            print(training.without_split(model, args.batch_size, networks.limit(args), plan))
        if args.picture:
            print(f"picture: {plan.plot(args.picture)}")
        if args.dump:
            print(f"graphs, schedule and memory: {args.dump}")
    except (NotImplementedError, ValueError, MemoryError, ImportError, OSError) as error:
        raise CommandError(f"{error}{training.split_that_fits(model, args, error)}") from None
    return 0
