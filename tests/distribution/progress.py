"""A sum of large arrays arrives while no rank does anything for it but the progress thread."""

import time

import numpy as np

from pydtconv.distribution.communicator import Communicator
from pydtconv.distribution.launch import world
from pydtconv.distribution.progress import Progress
from pydtconv.distribution.watch import Watch


def main():
    here = world()
    communicator = Communicator(here.comm, here.mpi, Watch(here))
    progress = Progress(communicator)
    progress.end()  # which has not begun
    for step in (1, 2):
        array = np.full(4 << 20, step, "float32")
        request = here.comm.Iallreduce(here.mpi.IN_PLACE, array)
        progress.begin()
        progress.begin()  # goes on
        end = time.monotonic() + 30
        while not (array == step * here.size).all():
            assert time.monotonic() < end, "nothing has arrived"
            time.sleep(0.01)
        progress.end()
        communicator.wait(request, "the sum")
    print(f"rank {here.rank}: arrived")


if __name__ == "__main__":
    main()
