"""Sums of large arrays arrive while no rank does anything for them but the progress thread: progress WHAT."""

import time
from pathlib import Path

import numpy as np

from pydtconv import config
from pydtconv._ext import wire as kernels
from pydtconv.distribution.gradients.all_reduce import Bfloat16AllReduce, MpiAllReduce
from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.distribution.mpi.launch import world
from pydtconv.distribution.mpi.progress import Progress
from pydtconv.distribution.mpi.watch import Watch
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore

COUNT, LENGTH = 7, 1 << 19


def arrives(array, value):
    end = time.monotonic() + 100
    while not (array == value).all():
        assert time.monotonic() < end, "nothing has arrived"
        time.sleep(0.01)


def one(here, communicator):
    progress = Progress(communicator, lambda: here.comm.Iprobe())
    progress.end()  # which has not begun
    for step in (1, 2):
        array = np.full(4 << 20, step, "float32")
        request = here.comm.Iallreduce(here.mpi.IN_PLACE, array)
        progress.begin()
        progress.begin()  # goes on
        arrives(array, step * here.size)
        progress.end()
        communicator.wait(request, "the sum")


class Counting(MpiAllReduce):
    """Counts the sums that are under way."""

    def __init__(self, communicator):
        super().__init__(communicator, communicator)  # nothing is gathered
        self.now = self.most = 0

    def start(self, gradients, part):
        self.now += 1
        self.most = max(self.most, self.now)
        request, backend = super().start(gradients, part), self

        class Request:
            done = False

            def Test(self):
                if not self.done and request.Test():
                    self.done = True
                    backend.now -= 1
                return self.done

        return Request()


def reduction_of(communicator):
    """Of gradients of COUNT variables, a bucket each; and what numbers of sums under way are seen."""
    store = ParameterStore([Variable(np.zeros(LENGTH, "float32"), name=f"variable {i}") for i in range(COUNT)])
    backend = Counting(communicator)
    backend.store = store  # a reduction does not keep it
    return Reduction(store, communicator, backend, LENGTH * 4), backend


def complete(reduction, count=COUNT):
    for variable in reduction.store.variables[:count]:
        reduction.gradient_ready(reduction.store.slice_of(variable))


def many(here, communicator):
    """More of them than may be under way together."""
    reduction, backend = reduction_of(communicator)
    for step in (1, 2):
        reduction.begin(True)
        reduction.store.gradients[:] = step
        complete(reduction)
        arrives(reduction.store.gradients, step * here.size)
        assert step > 1 or backend.most == 2
        assert len(list(reduction.arrivals())) == COUNT


def left(here, communicator):
    """A step that ends early, with more sums started on one rank than on the others, and then a whole one."""
    reduction, _ = reduction_of(communicator)
    reduction.begin(True)
    reduction.store.gradients[:] = 1
    complete(reduction, COUNT - 2)
    if here.rank == 0:
        time.sleep(0.3)
    reduction.stop()
    reduction.begin(True)
    assert (reduction.store.gradients[: (COUNT - 2) * LENGTH] == here.size).all()
    assert (reduction.store.gradients[(COUNT - 2) * LENGTH :] == 1).all()
    reduction.store.gradients[:] = 2
    complete(reduction)
    for part, total in reduction.arrivals():
        assert total is None
        assert (reduction.store.gradients[part] == 2 * here.size).all()


def threads():
    return len(list(Path("/proc/self/task").iterdir()))


def team(here, communicator):
    """The progress thread rounds and adds without a second team of threads."""
    config.set_num_threads(2)
    kernels.to_bfloat16(np.zeros(LENGTH, "float32"), np.zeros(LENGTH, "uint16"))  # the first one
    reduction, _ = reduction_of(communicator)
    reduction.backend = Bfloat16AllReduce(communicator, Communicator(here.comm, here.mpi, communicator.watch))
    before = threads()
    reduction.begin(True)
    reduction.store.gradients[:] = 1
    complete(reduction)
    arrives(reduction.store.gradients, here.size)
    assert threads() == before + 1, f"{threads()} threads after {before}"
    assert len(list(reduction.arrivals())) == COUNT


def main(what):
    here = world()
    {"one": one, "many": many, "left": left, "team": team}[what](here, Communicator(here.comm, here.mpi, Watch(here)))
    print(f"rank {here.rank}: arrived")
