"""Moving statistics of batch normalization, as means over the processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator, Request


class Averages:
    """Moving statistics, which each process updates with its own samples: their mean, weighted by samples.

    So all processes have the same variables after each step, whoever writes or evaluates them.
    """

    def __init__(self, variables: list[Any], communicator: Communicator) -> None:
        self.variables = variables
        self.communicator = communicator
        size = sum(variable.array.size for variable in variables)
        self._flat = np.zeros(size, np.result_type("float32", *{variable.dtype for variable in variables}))
        self._request: Request | None = None

    def start(self, portion: float) -> None:
        """After forward.  portion: this process's share of the samples."""
        at = 0
        for variable in self.variables:
            value = variable.array.reshape(-1)
            self._flat[at : at + value.size] = value * portion if portion else 0
            at += value.size
        if at:
            request = self.communicator.comm.Iallreduce(self.communicator.mpi.IN_PLACE, self._flat)
            self._request = self.communicator.observed(request, "the mean of the moving statistics")

    def finish(self) -> None:
        """Puts the means into the variables."""
        if self._request is None:
            return
        self.communicator.wait(self._request, "the mean of the moving statistics")
        self._request = None
        at = 0
        for variable in self.variables:
            variable.array[...] = self._flat[at : at + variable.array.size].reshape(variable.shape)
            at += variable.array.size
