"""The update of a store's variables by gradients that are summed over processes.

Whether a process takes the whole step, or a part of it (shards.py), its callers do not know.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.distribution.gradients.accumulation import Accumulation
from pydtconv.distribution.gradients.bucket_tuning import BucketTuning
from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph.plan import Plan
from pydtconv.graph.schedule.steps import Step
from pydtconv.optimizers import Optimizer

#: what to try where gradients are not finite
_SPREADS = (
    "convolutions by Winograd's method make infinities of values near the largest: "
    "config.set_conv_precision('strict') leaves that method out"
)


class GradientStep:
    """A step is `begin`, backward with the hooks of `reduction` and `before`, then `update`.

    All processes have all gradients, and all of the state: each takes the whole step.
    communicator: for small sums.  checks: whether gradients that are not finite are looked for.
    tuning: of the size of buckets.
    """

    def __init__(
        self,
        reduction: Reduction,
        accumulation: Accumulation,
        communicator: Communicator,
        tuning: BucketTuning | None = None,
    ) -> None:
        self.reduction = reduction
        self.accumulation = accumulation
        self.communicator = communicator
        self._tuning = tuning
        self._reduces = self._is_read = self._whole = True
        self._samples = 0

    def serves(self, optimizer: Optimizer) -> bool:
        """Whether it is for this optimizer as it is; otherwise another one must be made."""
        return True

    def begin(self, optimizer: Optimizer, keeps: bool, is_read: bool, size: int, samples: int) -> None:
        """Before backward.  keeps: gradients are looked for in the store after the step.  is_read: weights and state
        are, by others than training.  size, samples: of the batch, this process's and those of all.
        """
        reduction = self.reduction
        whole = self._whole = is_read or keeps or optimizer.has_own_apply or reduction.releases
        self._reduces = self.accumulation.begin(optimizer, reduction.store.variables, whole)
        takes = self._reduces and not whole and optimizer.gradient_accumulation_steps
        self._is_read, self._samples = is_read, samples
        if self._tuning is not None and self._reduces:
            self._tuning.begin(samples)
        reduction.begin(
            size > 0,
            in_blocks=optimizer.works_in_rows and not keeps and reduction.pieces is None,
            reduces=self._reduces,
            complete=partial(self.accumulation.take, optimizer) if takes else None,
            keeps_done=self._updates_early(optimizer),
        )

    def _updates_early(self, optimizer: Optimizer) -> bool:
        """Whether buckets are updated within backward."""
        return False

    def before(self, index: int, plan: Plan) -> None:
        """Before a step of a plan: waits for the weights that it reads."""

    def after(self, index: int, step: Step, plan: Plan) -> None:
        """After it: lets what is under way progress."""
        self.reduction.after(index, step)

    def update(self, optimizer: Optimizer) -> None:
        """The optimizer's step.  Raises FloatingPointError where gradients are checked, and are not finite."""
        if self.reduction.check:
            self._check_gradients()
        if self._reduces:
            self._update(optimizer)
        else:
            self._accumulate(optimizer)
        tuning = self._tuning if self._reduces else None
        if tuning is not None and tuning.end(self._samples) and self.communicator.rank == 0:
            print(f"buckets of {tuning.chosen} MiB are the fastest", flush=True)

    def finish(self) -> None:
        """Waits for what is under way, which an error may have left there."""
        self.reduction.finish()

    def to_host(self) -> None:
        """Gives all processes, which must all call it, all of the optimizer's state."""

    def _update(self, optimizer: Optimizer) -> None:
        store = self.reduction.store
        if optimizer.works_in_parts:
            optimizer.begin(store)
            for part, total in self.reduction.arrivals():
                optimizer.apply_part(part, total)
            optimizer.end()
        else:
            for _ in self.reduction.arrivals():
                pass
            optimizer.apply_store(store)

    def _accumulate(self, optimizer: Optimizer) -> None:
        optimizer.apply_store(self.reduction.store)

    def _total(self, own: np.ndarray) -> np.ndarray:
        return self.communicator.allreduce(own, "the norms and the check of the gradients")

    def _check_gradients(self) -> None:
        """Raises FloatingPointError, in all processes, naming variables and ranks where gradients are not finite."""
        reduction = self.reduction
        own = np.array([-1 if reduction.broken is None else reduction.broken])
        numbers = self.communicator.allgather(own, "the check of the gradients")[:, 0].tolist()
        variables = reduction.store.variables
        bad = [f"{variables[n].path} on rank {rank}" for rank, n in enumerate(numbers) if n >= 0]
        if bad:
            raise FloatingPointError(
                f"step {reduction.step}: the gradient is not finite, first that of {', '.join(bad)}"
                + ("" if config.conv_precision() == "strict" else f"; {_SPREADS}")
            )


class StepHooks:
    """The hooks of one run of a training step.  averages: started after forward, with this portion of the samples."""

    def __init__(self, step: GradientStep, averages: Any, plan: Plan, portion: float) -> None:
        self.step, self.averages = step, averages
        self.plan, self.portion = plan, portion
        self.gradient_ready = step.reduction.gradient_ready

    def before(self, index: int, step: Step) -> None:
        self.step.before(index, self.plan)
        if index == self.plan.backward_start and self.averages is not None:
            self.averages.start(self.portion)

    def after(self, index: int, step: Step) -> None:
        self.step.after(index, step, self.plan)
