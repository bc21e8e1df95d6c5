"""Tuning at first use: before the first step on batches of a shape, the convolutions that nobody has decided yet.

`config.set_conv_tuning` turns it on and says what is kept and why.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from pydtconv import config, replica
from pydtconv.conv import timings, tuning
from pydtconv.conv.tuning import Progress, Task
from pydtconv.devices import Device
from pydtconv.devices.accelerator import Accelerator

#: algorithms that by the cost model take more than so many times the best one's time are not tried
NEAR = 2.0


def hook(device: Device) -> Callable[[list[Task], int], bool] | None:
    """What a plan for a device is tuned by, None where tuning at first use is off."""
    return partial(tune, bench=bench_of(device)) if config.conv_tuning() else None


def bench_of(device: Device) -> tuning.Bench:
    """What passes are timed on."""
    if device.is_host:
        return tuning.Bench()
    from pydtconv.devices.tuning import DeviceBench

    assert isinstance(device, Accelerator)
    return DeviceBench(device)


def tune(tasks: list[Task], memory: int, bench: tuning.Bench | None = None) -> bool:
    """Times tasks that have not been decided, within the seconds that are left; returns whether there were any.

    memory: bytes of the whole step's arena: algorithms that need more by themselves are not tried.
    Where results cannot be kept a warning says so, and nothing is timed: the next run would choose otherwise.
    """
    bench = bench or tuning.Bench()
    todo = [task for task in dict.fromkeys(tasks) if not timings.decided(*task, bench.device)]
    if not todo:
        return False
    limits = [limit for limit in (config.conv_workspace_limit(), memory) if limit is not None]
    left, start = config.conv_tuning_left(), time.perf_counter()
    try:
        with shown(len(todo), "tuning convolutions", quiet=not replica.current().is_main) as progress:
            found = tuning.tune(tasks, left, min(limits), progress=progress, near=NEAR, final=True, bench=bench)
    except OSError as error:
        warnings.warn(
            f"convolutions are chosen by the cost model, as what tuning finds cannot be kept: {error}; "
            "PYDTCONV_CACHE names the folder",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    seconds = time.perf_counter() - start
    config.spend_conv_tuning(seconds)
    if replica.current().is_main and found.fresh + len(found.left):
        print(told(found, seconds), file=sys.stderr, flush=True)
    return True


def told(found: tuning.Tuned, seconds: float) -> str:
    """What happened, in a line."""
    text = f"tuned {found.fresh} passes of convolutions in {seconds:.1f} s, kept in {timings.path()}"
    if found.left:
        text += f"; no time for {len(found.left)} more, which are left to the cost model (`pydtconv tune` times them)"
    return text


@contextmanager
def shown(total: int, title: str, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar over passes, drawn where standard error is a terminal."""
    from tqdm import tqdm

    with tqdm(total=total, desc=title, unit="pass", leave=False, disable=quiet or not sys.stderr.isatty()) as bar:

        def progress(done: int, of: int, task: Task) -> None:
            bar.total = of
            bar.update(done - bar.n)

        yield progress
