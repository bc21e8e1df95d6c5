"""Training loops: the `Trainer` that models inherit from, and the adapters of data."""

from pydtconv.trainers.trainer import Trainer

__all__ = ["Trainer"]
