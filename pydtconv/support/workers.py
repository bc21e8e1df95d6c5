"""Batches that threads or processes make ahead of training."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.support.random import next_seed, set_random_seed

Submit = Callable[..., Future[Any]]
#: begin(index, submit) gives the parts of a batch to workers and returns what waits for them and gives the batch
Begin = Callable[[int, Submit], Callable[[], Any]]
#: what makes batches, and the seed of this run through the data, in a process that is a worker
_own: tuple[Callable[[int], Any], int]


def ahead(
    get: Callable[[int], Any],
    order: Iterable[int],
    workers: int,
    queue: int,
    processes: bool = False,
    begin: Begin | None = None,
) -> Iterator[Any]:
    """get(index) in order, computed ahead of time.  After an error, or Ctrl-C, nobody waits for the workers.

    processes: whether workers are processes, which are forked here, and do not see what changes later.
    begin: in the place of `get`, for batches that several workers make together.
    """
    waiting: deque[Callable[[], Any]] = deque()
    pool: Executor = _processes(get, workers) if processes else ThreadPoolExecutor(workers)
    call = _made if processes else get
    begin = begin or (lambda index, submit: submit(call, index).result)
    patient = True
    try:
        for index in order:
            waiting.append(begin(index, pool.submit))
            if len(waiting) >= max(queue, 1):
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()
    except BaseException as error:
        patient = isinstance(error, GeneratorExit)
        raise
    finally:
        pool.shutdown(wait=patient, cancel_futures=True)


def at_once(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """What `submit` of a pool does, done here and now."""
    future: Future[Any] = Future()
    future.set_result(function(*args))
    return future


def _processes(get: Callable[[int], Any], workers: int) -> Executor:
    import multiprocessing  # not before a data set asks for it: it takes 3 ms
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")  # a script need not guard its main part, nor `get` be pickled
    return ProcessPoolExecutor(workers, context, _begin, (get, next_seed()))


def _begin(get: Callable[[int], Any], seed: int) -> None:
    """Makes a process a worker: Ctrl-C is for its parent, and the parent's other threads do not exist here."""
    global _own
    _own = get, seed
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    config.set_num_threads(1)


def _made(index: int) -> Any:
    """A batch.  Seeds follow from its number, so that it is the same whichever worker makes it."""
    get, seed = _own
    set_random_seed(int(np.random.SeedSequence([seed, index]).generate_state(1)[0]))
    return get(index)
