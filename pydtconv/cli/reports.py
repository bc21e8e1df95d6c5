"""The options of what training writes and says, and the files at its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.cli import networks, run_files
from pydtconv.cli.data import Data
from pydtconv.cli.errors import CommandError
from pydtconv.cli.parser import whole


def add_arguments(group: Any) -> None:
    group.add_argument("--output", help="name of the files that are written, without suffix (default: the model's)")
    group.add_argument("--metrics", nargs="+", metavar="NAME", default=["accuracy"], help="default: accuracy")
    group.add_argument("--csv", metavar="FILE", help="write loss and metrics of each epoch into this table")
    group.add_argument("--tensorboard", metavar="FOLDER", help="write loss and metrics for TensorBoard")
    group.add_argument(
        "--confusion-matrix", metavar="FILE", help="draw which classes are taken for which, of test data"
    )
    group.add_argument("--profile", metavar="FILE", help="time some steps, and print a table of them; write it here")
    group.add_argument(
        "--trace",
        metavar="FILE",
        help="write the time line of all processes here: Chrome's JSON, for Paraver where it ends in .prv",
    )
    group.add_argument(
        "--trace-steps",
        type=whole(1),
        metavar="N",
        help="steps of --trace and --profile, after the first 2 (default: 10)",
    )


def check(args: Any) -> None:
    """Raises CommandError, before anything is computed, for metrics that are none and files that cannot be written."""
    from pydtconv import metrics, replica
    from pydtconv.profiling.trace import files_of

    for name in args.metrics:
        try:
            if name not in ("accuracy", "acc", "crossentropy"):
                metrics.get(name)
        except ValueError as error:
            raise CommandError(f"--metrics: {error}") from None
    for option, value in args.options.items():
        try:
            str(value).encode()
        except UnicodeEncodeError:
            raise CommandError(f"--{option}: expected text that is UTF-8, got {value!r}") from None
    if args.trace_steps is not None and not (args.trace or args.profile):
        raise CommandError("--trace-steps: expected --trace FILE or --profile FILE with it")
    if not replica.current().is_main:
        return
    networks.check_file("--output", f"{args.output or args.model}.weights.h5")
    for option in ("profile", "trace", "csv"):
        for path in files_of(getattr(args, option)) if getattr(args, option) else ():
            networks.check_file(f"--{option}", str(path))
    networks.check_picture("--confusion-matrix", args.confusion_matrix)
    if args.tensorboard:
        try:
            Path(args.tensorboard).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"--tensorboard: {error}") from None


def check_room(network: Any, name: str) -> None:
    """Raises CommandError, before anything is trained, where a file could not be written at the end.

    Nor is one replaced that no run has written, such as that of --config.
    """
    from pydtconv import replica
    from pydtconv.models.stored_weights import weights_bytes

    if replica.current().is_main:
        networks.check_file("--output", f"{name}.weights.h5", weights_bytes(network))
        networks.check_file("--output", f"{name}.png")
        networks.check_file("--output", f"{name}.toml")
        if not run_files.may_replace(f"{name}.toml"):
            told = "which `pydtconv train` has not written, would be replaced by the options of this run"
            raise CommandError(f"--output: expected another name than {name!r}: {name}.toml, {told}")


def callbacks(args: Any, append: bool = False) -> list[Any]:
    """What writes while training runs.  append: whether it goes on with a table."""
    from pydtconv.callbacks import CSVLogger, TensorBoard

    try:
        found = [TensorBoard(args.tensorboard)] if args.tensorboard else []
    except ImportError as error:
        raise CommandError(f"--tensorboard: {error}") from None
    return [*([CSVLogger(args.csv, append=append)] if args.csv else []), *found]


def result(args: Any, history: dict[str, list[float]]) -> str:
    """The test results of the weights that are kept: of the last epoch, or with --early-stopping of the best one."""
    losses, at = history["val_loss"][args.head_epochs or 0 :], -1
    if args.early_stopping is not None and not np.isnan(losses).all():
        at = int(np.nanargmin(losses)) - len(losses)
    if "val_accuracy" in history:
        return f"test accuracy {history['val_accuracy'][at]:.2%}"
    names = [name for name in history if name.startswith("val_")]
    return ", ".join(f"test {name.removeprefix('val_')} {history[name][at]:.4f}" for name in names)


def save(network: Any, path: str) -> Path | None:
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


def confusion_matrix(model: Any, found: Data, batch_size: int) -> np.ndarray:
    """Counts of test images (classes, classes): by their class, and by the one with the highest score."""
    x, y = found.test if isinstance(found.test, tuple) else (found.test, None)
    scores = model.predict(x, batch_size=None if y is None else batch_size, verbose=0)
    if y is None:
        y = np.concatenate([found.test[i][1] for i in range(len(found.test))])
    truth = y.argmax(-1) if y.ndim > 1 else y.reshape(-1)
    counts = np.zeros((found.classes, found.classes), np.int64)
    np.add.at(counts, (truth.astype(np.int64), scores.argmax(-1)), 1)
    return counts


def pictures(args: Any, counts: Any, found: Data, history: dict[str, list[float]], name: str, title: str) -> None:
    """Draws the learning curve, and the confusion matrix where there is one."""
    from pydtconv import utils
    from pydtconv.files.plotting import plot_confusion_matrix

    try:
        print(f"learning curve: {utils.plot_learning_curve(history, f'{name}.png', title=title)}")
    except (ImportError, OSError) as error:
        print(f"no learning curve: {error}")
    if counts is not None:
        try:
            print(f"confusion matrix: {plot_confusion_matrix(counts, args.confusion_matrix, found.names)}")
        except OSError as error:
            raise CommandError(f"--confusion-matrix: {error}", status=1) from None
