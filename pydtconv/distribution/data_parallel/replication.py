"""Rank 0's variables, optimizer state and random state, which all processes begin with."""

from __future__ import annotations

import numpy as np

from pydtconv.distribution.data_parallel import agreement
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.trainers.training import Training

#: elements of a variable that are sent at a time
_SENT = 1 << 20


def replicate(training: Training, small: Communicator) -> None:
    """Gives all processes, which all call it, what rank 0 has.

    One by one: which of them lie in flat arrays may differ, as where rank 0 alone has loaded weights.
    """
    state, what = training.memory.state, "the variables of rank 0"
    state.seed, state.step = small.bcast_object((state.seed, state.step), "the model's random state")
    variables = [*training.variables, *(() if training.optimizer is None else training.optimizer.variables)]
    agreement.check([f"state {i}: shape {each.shape}, {each.dtype}" for i, each in enumerate(variables)], small)
    for variable in variables:
        found = _of_rank_0(variable.array, small, what)
        if found is not None:
            variable.assign(found)


def _of_rank_0(own: np.ndarray, small: Communicator, what: str) -> np.ndarray | None:
    """Rank 0's array; None where this process has the same: slots of zeros then need no memory yet."""
    flat, found = own.reshape(-1), None
    for start in range(0, flat.size, _SENT):
        part = slice(start, start + _SENT)
        sent = np.empty_like(flat[part]) if small.rank else flat[part]
        small.bcast(sent, what)
        if not np.array_equal(sent.view(np.uint8), flat[part].view(np.uint8)):
            found = own.copy() if found is None else found
            found.reshape(-1)[part] = sent
    return found
