"""What a training is: what stands before the network, which layers learn, optimizer, loss and metrics.

`train` runs it; `plan` shows, `simulate` predicts and `tune` times the same.
"""

from __future__ import annotations

import argparse
from typing import Any

from pydtconv.cli import networks
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, mebibytes, number
from pydtconv.suggest import one_of

DEFAULT_OPTIMIZER = "momentum"
WEIGHT_DECAY = 5e-4
#: losses that are not of scores and classes
_OTHER_LOSSES = ("ctc", "circle", "deserialize", "get", "serialize")


def add_arguments(parser: Parser) -> None:
    """Options on which the plan of a step depends."""
    group = parser.add_argument_group("images and labels")
    group.add_argument("--augment", action="store_true", help="mirror and shift images in training")
    group.add_argument("--randaugment", action="store_true", help="change images in training as RandAugment does")
    group.add_argument(
        "--mixup", metavar="ALPHA", type=number(0, above=True), help="mix images and labels of a batch, as with 0.2"
    )
    group.add_argument("--label-smoothing", metavar="SHARE", type=number(0), help="of each label, over all classes")
    group = parser.add_argument_group("loss and optimizer")
    group.add_argument("--loss", help="its name in pydtconv.losses (default: sparse_categorical_crossentropy)")
    group.add_argument(
        "--optimizer",
        default=DEFAULT_OPTIMIZER,
        help="a name in pydtconv.optimizers, as adamw, or momentum (default: SGD with Nesterov's)",
    )
    group.add_argument(
        "--ema",
        metavar="MOMENTUM",
        type=number(0),
        nargs="?",
        const=0.99,
        help="test and write the moving averages of the weights (default momentum: 0.99)",
    )
    group = parser.add_argument_group("memory, algorithms, device")
    group.add_argument("--memory-limit", type=mebibytes, help="MiB, or a size such as 1GB, that a step may take")
    networks.add_variant(group)
    networks.add_precision(group)
    networks.add_split(group)
    networks.add_workspace_limit(group)
    networks.add_device(group)


def optimizers_by_name() -> dict[str, Any]:
    """The classes that --optimizer chooses from."""
    from pydtconv import optimizers

    others = ("Optimizer", "LossScaleOptimizer")
    names = [name for name in optimizers.__all__ if name[0].isupper() and name not in others]
    return {DEFAULT_OPTIMIZER: optimizers.SGD, **{name.lower(): getattr(optimizers, name) for name in names}}


def prepare(args: Any) -> None:
    """Makes --workspace-limit and --device active.  Raises CommandError for --device, and other options of a step."""
    networks.limit_workspace(args)
    networks.use_device(args)
    known = optimizers_by_name()
    if args.optimizer not in known:
        raise CommandError(f"--optimizer: unknown optimizer {args.optimizer!r}{one_of(args.optimizer, known)}")
    loss(args)
    if args.ema is not None and not args.ema < 1:
        raise CommandError(f"--ema: expected a momentum from 0 to below 1, got {args.ema:g}")


def optimizer(name: str, rate: Any, weight_decay: float = WEIGHT_DECAY, ema: float | None = None) -> Any:
    """One of `optimizers_by_name` with a learning rate or a schedule of it.  ema: momentum of moving averages."""
    options: dict[str, Any] = {"momentum": 0.9, "nesterov": True} if name == "momentum" else {}
    if ema is not None:
        options |= {"use_ema": True, "ema_momentum": ema}
    return optimizers_by_name()[name](rate, weight_decay=weight_decay, **options)


#: what is tried where no plan without patches meets a limit: with the results of the whole network first
SPLITS = ("0.5:2x2:exact", "0.5:2x2")
_MIB = 1 << 20


def split_that_fits(model: Any, args: Any, error: Exception) -> str:
    """What to say of a limit that no plan meets: the --split with which one does; "" where none does."""
    from pydtconv import MemoryLimitError, replica

    if not isinstance(error, MemoryLimitError) or model.split is not None or replica.current().size > 1:
        return ""
    if error.fixed_bytes > error.limit:
        return ""
    for split in SPLITS:
        model.compile(model.optimizer, split=split)
        try:
            model.plan(args.batch_size, memory_limit=error.limit)
        except (MemoryError, ValueError):  # what is no image cannot be split
            continue
        return f"; --split {split} would do"
    return ""


def without_split(model: Any, batch_size: int, limit: int | None, plan: Any) -> str:
    """A line: what a step takes without the model's patches."""
    from pydtconv import MemoryLimitError

    model.compile(model.optimizer)
    try:
        peak = model.plan(batch_size, memory_limit=limit).peak_bytes
    except MemoryLimitError as error:
        return f"without --split: no plan below {error.smallest_bytes / _MIB:.2f} MiB"
    hint = "" if plan.peak_bytes < peak or limit is not None else "; patches pay within a --memory-limit"
    return f"without --split: {peak / _MIB:.2f} MiB{hint}"


def one_hot(args: Any) -> bool:
    """Whether labels are rows of scores, not numbers of classes."""
    return not _loss_name(args).startswith("sparse_")


def _loss_name(args: Any) -> str:
    rows = args.mixup is not None or args.label_smoothing is not None
    return args.loss or ("categorical_crossentropy" if rows else "sparse_categorical_crossentropy")


def loss(args: Any) -> Any:
    """--loss with --label-smoothing.  Raises CommandError for an unknown one, and one without rows of scores."""
    from pydtconv import losses

    name = _loss_name(args)
    known = [each for each in losses.__all__ if each.islower() and each not in _OTHER_LOSSES]
    if name not in known:
        raise CommandError(f"--loss: unknown loss {name!r}{one_of(name, known)}")
    if args.mixup is not None and not one_hot(args):
        raise CommandError(f"--mixup: expected a --loss of rows of scores, as categorical_crossentropy, got {name!r}")
    if args.label_smoothing is None:
        return name
    if not 0 <= args.label_smoothing < 1:
        raise CommandError(f"--label-smoothing: expected a share from 0 to below 1, got {args.label_smoothing:g}")
    cls = next(cls for key, cls in vars(losses).items() if key.lower() == name.replace("_", "") and key != name)
    try:
        return cls(label_smoothing=args.label_smoothing)
    except TypeError:
        raise CommandError(f"--label-smoothing: the loss {name!r} has none") from None


def compiled(
    network: Any,
    shape: networks.Shape,
    optimizer: Any,
    args: Any = None,
    split: Any = None,
    metrics: Any = ("accuracy",),
) -> Any:
    """The model that is trained: the network behind scaled images, with optimizer, loss and metrics.

    args: the options of `add_arguments`; None for none of them.
    """
    args = args or argparse.Namespace(augment=False, randaugment=False, mixup=None, label_smoothing=None, loss=None)
    model = networks.scaled(network, shape, args.augment, args.randaugment)
    compile_again(model, optimizer, args, split, metrics)
    return model


def compile_again(model: Any, optimizer: Any, args: Any, split: Any, metrics: Any) -> None:
    """Compiles what `compiled` has made with another optimizer, after layers were frozen or not."""
    model.compile(optimizer, loss(args), metrics=list(metrics), split=split)
