"""Trains a network of the zoo, writes its weights, and draws the learning curve.

  pydtconv train --model resnet20 --dataset cifar10 --epochs 3 --augment
  pydtconv train --model resnet34 --data photos --epochs 10 --variant CGT --memory-limit 4000

  pydtconv train --model resnet34 --checkpoint saved --save-every 500 --resume

With --checkpoint everything that training depends on is written; after a crash, a kill or Ctrl-C the same command with
--resume continues in the middle of the epoch, with the results of a run that was not interrupted.

The learning rate falls to zero along a cosine.  Weights and curve are named after the model unless --output says else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydtconv.cli import checkpointing, networks, processes, training
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, number, whole

SUMMARY = "train a network of the zoo on a data set or a folder of images"


def add_arguments(parser: Parser) -> None:
    networks.add_model(parser)
    networks.add_weights(parser)
    networks.add_data(parser)
    parser.add_argument("--epochs", type=whole(1), default=10, help="passes over the training data (default: 10)")
    training.add_arguments(parser)
    parser.add_argument(
        "--learning-rate", type=number(0, above=True), help="at the start (default: 0.05, or 0.001 for adaptive ones)"
    )
    parser.add_argument(
        "--base-batch-size",
        type=whole(1),
        help="size that the learning rate is meant for: it is scaled by --batch-size over it",
    )
    parser.add_argument("--warmup-epochs", type=number(0), help="epochs in which the rate grows to the scaled one")
    parser.add_argument("--weight-decay", type=number(0), default=training.WEIGHT_DECAY, help="default: 5e-4")
    parser.add_argument(
        "--offload",
        metavar="FOLDER",
        help="write tensors here between forward and backward, to stay within it; on a GPU 'host', pinned memory",
    )
    parser.add_argument(
        "--tune",
        metavar="SECONDS",
        type=float,
        nargs="?",
        const=60.0,
        help="time the convolutions that have not been timed on this machine, before they run (default: 60 seconds)",
    )
    checkpointing.add_arguments(parser)
    parser.add_argument("--profile", metavar="FILE", help="time some steps; write their time line (Chrome's JSON) here")
    parser.add_argument("--seed", type=whole(0, 2**32 - 1), default=1, help="equal seeds give equal runs (default: 1)")
    parser.add_argument("--output", help="name of the files that are written, without suffix (default: the model's)")
    processes.add_arguments(parser, own_network=True)


def run(args: Any) -> int:
    from pydtconv import config, profiling, replica, utils
    from pydtconv.callbacks import PreciseBatchNorm
    from pydtconv.checkpoints import CheckpointError

    processes.start(args)
    networks.prepare(args)
    training.prepare(args)
    _check_before_data(args)
    split = networks.split(args)
    utils.set_random_seed(args.seed)
    if args.tune is not None:
        try:
            config.set_conv_tuning(args.tune)
        except ValueError:
            raise CommandError(f"--tune: expected seconds of 0 or more, got {args.tune}") from None
    backup = checkpointing.callbacks_of(args)
    train, test, shape, classes = networks.load(args, training=True)
    network = networks.build(args, shape, classes)
    processes.synchronize(args, network)
    steps = len(train) if args.data else -(-len(train[0]) // args.batch_size)
    model = training.compiled(network, shape, optimizer(args, steps), args.augment, split)
    name = args.output or network.name
    _check_outputs(args, network, name)
    whole = max(steps - 1, 1) * args.epochs  # batches of one size, where the last one of an epoch is smaller
    profiler = profiling.Profiler(skip=max(min(2, whole - 1), 0)) if args.profile else None
    callbacks = [*backup, *([profiler] if profiler else [])]
    if split is not None and not split.exact:  # evaluation is of the whole network
        callbacks.append(PreciseBatchNorm(train if args.data else train[0]))
    options = {"epochs": args.epochs, "memory_limit": networks.limit(args), "callbacks": callbacks}
    options["offload"] = args.offload
    try:
        if args.data:
            history = model.fit(train, validation_data=test, **options)
        else:
            test = (test[0], networks.labels(test[1]))
            history = model.fit(
                train[0], networks.labels(train[1]), batch_size=args.batch_size, validation_data=test, **options
            )
    except (ValueError, NotImplementedError, MemoryError, CheckpointError) as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        if "offload:" not in str(error):
            raise
        raise CommandError(str(error)) from None
    except KeyboardInterrupt:
        hint = ": the same command with --resume goes on" if backup else ""
        raise CommandError(f"interrupted{hint}", status=130) from None
    written = _save(network, f"{name}.weights.h5")
    print(f"test accuracy {history.history['val_accuracy'][-1]:.2%}")
    print(f"weights: {written or f'{name}.weights.h5'}")
    status = 1 if written else 0
    if profiler is not None:
        write_profile(profiler, args.profile)
    if not replica.current().is_main:
        return status
    try:
        print(f"learning curve: {utils.plot_learning_curve(history, f'{name}.png', title=network.name)}")
    except (ImportError, OSError) as error:
        print(f"no learning curve: {error}")
    return status


def _check_before_data(args: Any) -> None:
    """Raises CommandError for options that do not fit, which need no data to be looked at."""
    from pydtconv import replica
    from pydtconv.engine import offloading

    optimizer(args, steps=1)
    try:
        offloading.folder_of(args.offload, networks.limit(args))
    except ValueError as error:
        raise CommandError(str(error)) from None
    if replica.current().is_main:
        networks.check_file("--output", f"{args.output or args.model}.weights.h5")
        if args.profile:
            networks.check_file("--profile", args.profile)


def _check_outputs(args: Any, network: Any, name: str) -> None:
    """Raises CommandError, before anything is trained, where a file could not be written at the end."""
    from pydtconv import replica
    from pydtconv.models.stored_weights import weights_bytes

    if not replica.current().is_main:
        return
    networks.check_file("--output", f"{name}.weights.h5", weights_bytes(network))
    networks.check_file("--output", f"{name}.png")


def _save(network: Any, path: str) -> Path | None:
    """Writes the weights, or else somewhere else than asked for, which is returned: they took long to find."""
    from pydtconv.files.whole_file import write_elsewhere
    from pydtconv.models.stored_weights import weights_bytes
    from pydtconv.models.weight_files import write_weights

    try:
        network.save_weights(path)
    except OSError as error:
        print(f"pydtconv train: --output: {error}", file=sys.stderr, flush=True)
        try:
            return write_elsewhere(
                Path(path), ".weights.h5", lambda file: write_weights(network, file), weights_bytes(network)
            )
        except OSError as other:
            raise CommandError(f"the weights could not be written anywhere: {other}", status=1) from None
    return None


def write_profile(profiler: Any, path: str) -> None:
    """Prints what was found and writes the time line.  Raises CommandError where no step was recorded."""
    from pydtconv import replica

    try:
        written = profiler.write(path)
    except (ValueError, OSError) as error:
        raise CommandError(f"--profile: {error}") from None
    if replica.current().is_main:
        print(profiler.profile)
        print(f"time line: {written}")


def optimizer(args: Any, steps: int) -> Any:
    """The optimizer that is named, with a learning rate that falls to zero within the epochs of so many steps."""
    from pydtconv import optimizers

    adaptive = args.optimizer not in ("sgd", "momentum")
    start = args.learning_rate or (0.001 if adaptive else 0.05)
    rate: Any = optimizers.schedules.CosineDecay(start, max(steps * args.epochs, 1))
    if args.warmup_epochs is not None and args.base_batch_size is None:
        raise CommandError("--warmup-epochs: expected --base-batch-size too, from whose learning rate it grows")
    if args.base_batch_size is not None:
        try:
            factor, warmup = args.batch_size / args.base_batch_size, (args.warmup_epochs or 0) * steps
            rate = optimizers.schedules.LinearScaling(rate, factor, warmup)
        except (ValueError, OverflowError):
            raise CommandError(
                "--batch-size, --base-batch-size: expected sizes whose ratio is a number above 0, got "
                f"{args.batch_size} and {args.base_batch_size}"
            ) from None
    return training.optimizer(args.optimizer, rate, args.weight_decay)
