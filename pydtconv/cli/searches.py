"""Options that look for a learning rate or a batch size, and end: nothing is trained or written but a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.cli import networks
from pydtconv.cli.errors import CommandError

_FIRST, _LAST, _STEPS = 1e-6, 1.0, 100


def add_arguments(group: Any) -> None:
    group.add_argument(
        "--find-learning-rate", metavar="FILE", help=f"draw the loss over rates that grow within {_STEPS} steps"
    )
    group.add_argument("--find-batch", action="store_true", help="print the largest batch within --memory-limit")


def check(args: Any) -> None:
    networks.check_picture("--find-learning-rate", args.find_learning_rate)
    if args.find_batch:
        check_limit("--find-batch", args)


def check_limit(option: str, args: Any) -> None:
    """Raises CommandError where an option looks for the largest batch and has no limit."""
    if args.memory_limit is None:
        raise CommandError(f"{option}: expected --memory-limit too, within which it looks")


def find_batch(model: Any, limit: Any, offload: Any = None) -> None:
    """Prints the largest batch within bytes.  Raises CommandError where there is none."""
    try:
        size = model.largest_batch(limit, offload)
        peak = model.plan(size, memory_limit=limit, offload=offload).peak_bytes
    except (MemoryError, OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    print(f"largest batch within {limit / 2**20:.1f} MiB: {size}, with a peak of {peak / 2**20:.0f} MiB")


def losses_over_rates(model: Any, data: Any, steps: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """(rates, losses) of steps in which the rate grows evenly on a logarithmic scale.  steps: of an epoch.

    Ends where the loss is four times the smallest.  L. N. Smith, "Cyclical Learning Rates", WACV 2017, section 3.3.
    """
    from pydtconv.callbacks import Callback

    rates = np.geomspace(_FIRST, _LAST, _STEPS)
    losses: list[float] = []

    class Growing(Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.model.optimizer.learning_rate = rates[min(len(losses), len(rates) - 1)]

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen = len(losses) - batch  # before this epoch, whose mean the loss is
            mean = float((logs or {})["loss"])
            losses.append(mean * (batch + 1) - sum(losses[seen:]))
            if len(losses) == len(rates) or not losses[-1] < 4 * min(losses) + 1e-12:
                self.model.stop_training = True

    model.fit(*data, epochs=-(-_STEPS // steps), callbacks=[Growing()], verbose=0, **options)
    return rates[: len(losses)], np.array(losses)


def find_learning_rate(model: Any, data: Any, steps: int, path: str, **options: Any) -> None:
    """Draws loss over rate, and prints the rate at which the smoothed loss falls fastest.

    Raises CommandError where no loss is finite.
    """
    from pydtconv.files.plotting import plot_learning_rates

    rates, losses = losses_over_rates(model, data, steps, **options)
    finite = int(np.isfinite(losses).cumprod().sum())  # those of the steps before the first that diverged
    if not finite:
        raise CommandError(f"--find-learning-rate: the loss is {losses[0]} at the smallest rate, {rates[0]:.1e}")
    rates, losses = rates[:finite], losses[:finite]
    smooth = np.convolve(np.pad(losses, 2, "edge"), np.ones(5) / 5, "valid")
    best = rates[int(np.gradient(smooth).argmin())] if len(rates) > 1 else rates[0]
    print(f"learning rate: {best:.1e}, where the loss falls fastest")
    print(f"loss over rates: {plot_learning_rates(rates, losses, best, path)}")
