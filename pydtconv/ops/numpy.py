"""The functions of `pydtconv.ops` that `keras.ops.numpy` has: those of NumPy."""

from pydtconv.ops.parts import part_of_ops

__all__, __getattr__, __dir__ = part_of_ops(__name__)
