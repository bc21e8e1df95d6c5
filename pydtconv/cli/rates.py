"""The options of the learning rate over the steps, and of when training ends."""

from __future__ import annotations

from typing import Any

from pydtconv.cli import training
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import number, whole

SCHEDULES = ("cosine", "step", "plateau", "onecycle", "constant")
#: epochs without improvement after which `plateau` divides the rate by ten
_PLATEAU = 3


def add_arguments(group: Any) -> None:
    group.add_argument("--epochs", type=whole(1), default=10, help="passes over the training data (default: 10)")
    group.add_argument("--steps-per-epoch", metavar="N", type=whole(1), help="steps of an epoch (default: all batches)")
    group.add_argument(
        "--early-stopping",
        metavar="EPOCHS",
        type=whole(1),
        help="stop after so many without a smaller test loss, with the best weights",
    )
    group.add_argument(
        "--learning-rate",
        type=number(0, above=True),
        help="the largest (default: 0.05, 1 for lars, 0.001 for the other adaptive ones)",
    )
    group.add_argument(
        "--schedule",
        choices=SCHEDULES,
        default="cosine",
        help="of the rate: falls to 0 along a cosine (default), in steps of ten at 1/2 and 3/4, by ten where the test "
        f"loss has not improved for {_PLATEAU} epochs, rises and falls in one cycle, or stays",
    )
    group.add_argument(
        "--base-batch-size",
        type=whole(1),
        help="size that the learning rate is meant for: it is scaled by --batch-size over it",
    )
    group.add_argument("--warmup-epochs", type=number(0), help="epochs in which the rate grows to the scaled one")
    group.add_argument("--weight-decay", type=number(0), default=training.WEIGHT_DECAY, help="default: 5e-4")


def first(args: Any) -> float:
    """--learning-rate, or what is usual for --optimizer."""
    return args.learning_rate or {"sgd": 0.05, "momentum": 0.05, "lars": 1.0}.get(args.optimizer, 0.001)


def optimizer(args: Any, steps: int) -> Any:
    """The optimizer that is named, with a rate that follows --schedule within the epochs of so many steps.

    Raises CommandError for options that do not go together.
    """
    from pydtconv.optimizers import schedules

    start, total = first(args), max(steps * args.epochs, 1)
    rate: Any = start
    if args.schedule == "cosine":
        rate = schedules.CosineDecay(start, total)
    elif args.schedule == "step":
        rate = schedules.PiecewiseConstantDecay([total // 2, total * 3 // 4], [start, start / 10, start / 100])
    elif args.schedule == "onecycle":
        rise = 0.3 * total
        rate = schedules.CosineDecay(start / 25, total - rise, warmup_target=start, warmup_steps=rise)
    if args.warmup_epochs is not None and args.base_batch_size is None:
        raise CommandError("--warmup-epochs: expected --base-batch-size too, from whose learning rate it grows")
    if args.base_batch_size is not None:
        if args.schedule == "plateau":
            raise CommandError(
                "--base-batch-size: expected another --schedule than plateau, which sets the rate itself"
            )
        try:
            factor, warmup = args.batch_size / args.base_batch_size, (args.warmup_epochs or 0) * steps
            rate = schedules.LinearScaling(rate, factor, warmup)
        except (ValueError, OverflowError):
            raise CommandError(
                "--batch-size, --base-batch-size: expected sizes whose ratio is a number above 0, got "
                f"{args.batch_size} and {args.base_batch_size}"
            ) from None
    return training.optimizer(args.optimizer, rate, args.weight_decay, args.ema)


def callbacks(args: Any) -> list[Any]:
    """What changes the rate, ends training, or takes the averages of the weights."""
    from pydtconv.callbacks import EarlyStopping, ReduceLROnPlateau, SwapEMAWeights

    found: list[Any] = []
    if args.ema is not None:
        found.append(SwapEMAWeights(swap_on_epoch=True))
    if args.schedule == "plateau":
        found.append(ReduceLROnPlateau(factor=0.1, patience=_PLATEAU))
    if args.early_stopping is not None:
        found.append(EarlyStopping(patience=args.early_stopping, restore_best_weights=True))
    return found
