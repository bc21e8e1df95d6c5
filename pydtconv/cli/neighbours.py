"""Other ranks of a host, while one is profiled: processes that train the same step again and again.

Ranks of one host share its memory's bandwidth and its clock.  How much slower that makes each of them is measured by
having them all compute at once, each by itself.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pydtconv.cli.errors import CommandError

#: option of `pydtconv simulate` that makes it one of these processes
OPTION = "--neighbour"


@contextmanager
def busy(words: Sequence[str], count: int, threads: int) -> Iterator[list[int]]:
    """While so many processes train; gives their numbers.  words: `pydtconv simulate`'s, which say what.

    Raises CommandError where one does not come to train.
    """
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "pydtconv", "simulate", *words, OPTION]
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            each = subprocess.Popen(
                command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            stack.callback(_end, each)
            found.append(each)
        for each in found:
            assert each.stdout is not None
            if each.stdout.readline().strip() != "training":
                _, told = each.communicate()
                raise CommandError(f"--ranks-per-host: expected {count} processes beside this one, got {told[-500:]}")
        yield [each.pid for each in found]
        if any(each.poll() is not None for each in found):
            raise CommandError("--ranks-per-host: expected processes that train until the end, got one that has ended")


def serve(model: Any, x: Any, y: Any) -> None:
    """Trains until the one that has started this process wants its end, or is gone."""
    model.train_on_batch(x, y)
    print("training", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        model.train_on_batch(x, y)


def _end(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.terminate()
    process.wait()
