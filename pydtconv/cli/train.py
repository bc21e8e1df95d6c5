"""Trains a network of the zoo, writes its weights, and draws the learning curve.

  pydtconv train --model resnet20 --dataset cifar10 --epochs 3 --augment
  pydtconv train --model resnet34 --data photos --epochs 10 --memory-limit 4GB
  pydtconv train --model resnet18 --data photos --pretrained resnet18.pth --head-epochs 2
  pydtconv train --model resnet34 --checkpoint saved --save-every 500 --resume

With --checkpoint everything that training depends on is written; after a crash, a kill or Ctrl-C the same command with
--resume continues in the middle of the epoch, with the results of a run that was not interrupted.

Weights (NAME.weights.h5), the curve (NAME.png) and a file of the options (NAME.toml), which repeats the run, are named
after the model unless --output says else.
"""

from __future__ import annotations

from typing import Any

from pydtconv.cli import (
    checkpointing,
    data,
    finetuning,
    networks,
    processes,
    rates,
    reports,
    run_files,
    searches,
    training,
)
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import Parser, whole

SUMMARY = "train a network of the zoo on a data set or a folder of images"


def add_arguments(parser: Parser) -> None:
    group = parser.add_argument_group("network")
    networks.add_model(group)
    networks.add_weights(group)
    finetuning.add_arguments(parser.add_argument_group("fine-tuning"))
    group = parser.add_argument_group("data")
    data.add_arguments(group)
    data.add_training(group)
    group = parser.add_argument_group("how long, and how fast it learns")
    rates.add_arguments(group)
    group.add_argument("--seed", type=whole(0, 2**32 - 1), default=1, help="equal seeds give equal runs (default: 1)")
    training.add_arguments(parser)
    group = parser.add_argument_group("more memory and speed")
    group.add_argument(
        "--offload",
        metavar="FOLDER",
        help="write tensors here between forward and backward, to stay within it; on a GPU 'host', pinned memory; "
        "layerwise:FOLDER: all of them, without a schedule",
    )
    group.add_argument(
        "--tune",
        metavar="SECONDS",
        type=float,
        nargs="?",
        const=60.0,
        help="time the convolutions that have not been timed on this machine, before they run (default: 60 seconds)",
    )
    searches.add_arguments(parser.add_argument_group("looks, and trains nothing"))
    checkpointing.add_arguments(parser.add_argument_group("checkpoints"))
    group = parser.add_argument_group("what is written")
    reports.add_arguments(group)
    group.add_argument(
        "--debug-nan", action="store_true", help="end where the loss is not finite, and name the first step and layer"
    )
    group.add_argument("--config", metavar="FILE", help="options of a TOML file, as a run has written it (NAME.toml)")
    processes.add_arguments(parser, own_network=True)


def run(args: Any) -> int:
    from pydtconv import config, profiling, utils
    from pydtconv.callbacks import PreciseBatchNorm, TerminateOnNaN

    processes.start(args)
    _check_before_data(args)
    split = networks.split(args)
    utils.set_random_seed(args.seed)
    if args.tune is not None:
        try:
            config.set_conv_tuning(args.tune)
        except ValueError:
            raise CommandError(f"--tune: expected seconds of 0 or more, got {args.tune}") from None
    backup = checkpointing.callbacks_of(args)
    found = data.load(args, training=True, one_hot=training.one_hot(args))
    network = networks.build(args, found.shape, found.classes)
    processes.synchronize(args, network)
    steps = args.steps_per_epoch or found.batches(args.batch_size)
    finetuning.freeze(network, args.freeze)
    model = training.compiled(network, found.shape, rates.optimizer(args, steps), args, split, args.metrics)
    if args.find_batch:
        searches.find_batch(model, networks.limit(args), args.offload)
        return 0
    train, options = _batches(args, found)
    options |= {"memory_limit": networks.limit(args), "offload": args.offload}
    if args.find_learning_rate:
        plain = training.optimizer(args.optimizer, rates.first(args), args.weight_decay)
        training.compile_again(model, plain, args, split, args.metrics)
        searches.find_learning_rate(model, train, found.batches(args.batch_size), args.find_learning_rate, **options)
        return 0
    name = args.output or network.name
    reports.check_room(network, name)
    recorded = {"steps": args.trace_steps or 10, "path": args.trace}
    profiler = profiling.Profiler(**recorded) if args.profile or args.trace else None
    debug = [TerminateOnNaN(raise_error=True, find_layer=True)] if args.debug_nan else []
    watching = [*reports.callbacks(args), *debug, *([profiler] if profiler else [])]
    callbacks = [*backup, *rates.callbacks(args), *watching]
    if split is not None and not split.exact:  # evaluation is of the whole network
        callbacks.append(PreciseBatchNorm(train[0]))
    options |= {"validation_data": found.test, "steps_per_epoch": args.steps_per_epoch}
    history = _fitted(args, model, network, train, callbacks, options)
    return _written(args, model, network, found, history, name, profiler)


def _check_before_data(args: Any) -> None:
    """Raises CommandError for options that do not fit, which need no data to be looked at."""
    from pydtconv.engine import offloading

    networks.prepare(args)
    training.prepare(args)
    rates.optimizer(args, steps=1)
    finetuning.check(args)
    data.check(args)
    try:
        offloading.folder_of(args.offload, networks.limit(args))
    except ValueError as error:
        raise CommandError(str(error)) from None
    reports.check(args)
    searches.check(args)


def _batches(args: Any, found: data.Data) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What is given to `fit`: the data, and options."""
    if args.mixup is not None:
        arrays = isinstance(found.train, tuple)
        of = data.Batches(found.train[0], found.train[1], args.batch_size, args.seed) if arrays else found.train
        return (data.Mixed(of, args.mixup, args.seed),), {}
    return (found.train, {"batch_size": args.batch_size}) if isinstance(found.train, tuple) else ((found.train,), {})


def _fitted(
    args: Any, model: Any, network: Any, train: tuple[Any, ...], callbacks: list[Any], options: dict[str, Any]
) -> dict[str, list[float]]:
    """The history of all epochs.  Raises CommandError for what ends them."""
    from pydtconv.callbacks import PreciseBatchNorm, TerminateOnNaN
    from pydtconv.checkpoints import CheckpointError

    first: dict[str, list[float]] = {}
    try:
        if args.head_epochs:
            optimizer, at = model.optimizer, args.head_epochs
            head = training.optimizer(args.optimizer, rates.first(args), args.weight_decay)
            finetuning.freeze(network, "1")
            training.compile_again(model, head, args, model.split, args.metrics)
            steady = [each for each in callbacks if isinstance(each, (TerminateOnNaN, PreciseBatchNorm))]
            first = model.fit(*train, epochs=at, callbacks=[*reports.callbacks(args), *steady], **options).history
            finetuning.freeze(network, args.freeze)
            training.compile_again(model, optimizer, args, model.split, args.metrics)
            ours = {type(callback) for callback in reports.callbacks(args)}
            callbacks = [each for each in callbacks if type(each) not in ours] + reports.callbacks(args, append=True)
            options = {**options, "initial_epoch": at}
        epochs = args.epochs + (args.head_epochs or 0)
        second = model.fit(*train, epochs=epochs, callbacks=callbacks, **options).history
    except (ValueError, NotImplementedError, MemoryError, CheckpointError) as error:
        raise CommandError(f"{error}{training.split_that_fits(model, args, error)}") from None
    except OSError as error:
        if "offload:" not in str(error):
            raise
        raise CommandError(str(error)) from None
    except RuntimeError as error:
        if not args.debug_nan:
            raise
        raise CommandError(str(error), status=1) from None
    except KeyboardInterrupt:
        hint = ": the same command with --resume goes on" if args.checkpoint else ""
        raise CommandError(f"interrupted{hint}", status=130) from None
    return {key: [*first.get(key, []), *values] for key, values in second.items()}


def _written(
    args: Any, model: Any, network: Any, found: data.Data, history: dict[str, list[float]], name: str, profiler: Any
) -> int:
    """Writes what training ends with; returns the exit status."""
    from pydtconv import replica

    written = reports.save(network, f"{name}.weights.h5")
    weights = str(written or f"{name}.weights.h5")
    print(reports.result(args, history))
    print(f"weights: {weights}")
    if replica.current().way_of_gradients:
        print(f"gradients: {replica.current().way_of_gradients}")
    status = 1 if written else 0
    if args.trace:
        print(f"time line: {args.trace}")
    if args.profile:
        reports.write_profile(profiler, args.profile)
    counts = reports.confusion_matrix(model, found, args.batch_size) if args.confusion_matrix else None
    if not replica.current().is_main:
        return status
    result = {"weights": weights, "classes": found.classes, "names": found.names, "shape": list(found.shape)}
    try:
        run_files.write(f"{name}.toml", "train", args.options, result)
        print(f"options: {name}.toml")
    except OSError as error:
        print(f"no options: {error}")
    reports.pictures(args, counts, found, history, name, network.name)
    return status
