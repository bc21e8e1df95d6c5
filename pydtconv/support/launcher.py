"""What started this process, as its environment says; a warning where processes train without each other."""

from __future__ import annotations

import os
import warnings
from functools import cache

from pydtconv import replica

#: (number of processes, number of this one) in the environments of the launchers of MPI's libraries, and of Slurm's
_VARIABLES = (
    ("PMI_SIZE", "PMI_RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
)
_SLURM = ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")


def launched() -> tuple[int, int]:
    """(processes, number of this one) as the launcher told them; (1, 0) where there is none.  MPI is not touched.

    A shell that one launcher has started as its only process (`srun --mpi=pmi2 --pty bash`) may start several by
    another one.
    """
    told = [found for size, rank in _VARIABLES if (found := _told(size, rank)) is not None]
    several = next((found for found in told if found[0] > 1), None)
    return several or (told[0] if told else _told(*_SLURM) or (1, 0))


def _told(size: str, rank: str) -> tuple[int, int] | None:
    count, number = os.environ.get(size, ""), os.environ.get(rank, "0")
    return (int(count), int(number) if number.isdecimal() else 0) if count.isdecimal() else None


@cache
def check_apart() -> None:
    """Warns once, in the first of several processes that were started together, where each is about to train alone.

    Not where the program has said how it trains: by `distribution.set_distribution`, with None, too.
    """
    size, rank = launched()
    if size > 1 and rank == 0 and not replica.was_set():
        warnings.warn(
            f"{size} processes were started together, and each trains a model of its own. To train one model, call "
            "pydtconv.distribution.set_distribution(pydtconv.distribution.DataParallel()) first, or start the script "
            "with `pydtconv run`; set_distribution(None) says that they are to train apart",
            UserWarning,
            stacklevel=2,
        )


@cache
def check_loop() -> None:
    """The same for a loop of a user's own, which processes do not share even where a distribution is active."""
    here = replica.current()
    if here.size == 1:
        check_apart()
    elif here.is_main:
        warnings.warn(
            f"each of {here.size} processes runs this training loop by itself: expected the step as a model's "
            "train_step, which `fit` and `train_on_batch` share among processes",
            UserWarning,
            stacklevel=2,
        )
