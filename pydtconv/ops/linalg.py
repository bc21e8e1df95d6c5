"""The functions of `pydtconv.ops` that `keras.ops.linalg` has: those of linear algebra."""

from pydtconv.ops.parts import part_of_ops

__all__ = """
    cholesky cholesky_inverse det eig eigh inv jvp lstsq lu_factor matrix_rank norm pinv qr solve solve_triangular
    svd
""".split()  # noqa: SIM905

__getattr__, __dir__ = part_of_ops(__name__, __all__)
