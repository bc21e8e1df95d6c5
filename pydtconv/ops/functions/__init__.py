"""Functions with the names and argument orders of `keras.ops`, by family, applied to tensors, variables or arrays.

Each file lists in `__all__` what `pydtconv.ops` offers of it.
"""
