"""The C library's gemm through ctypes: with callbacks, which the Python function does not offer."""

import ctypes
from pathlib import Path

import numpy as np

from pydtconv import _ext
from pydtconv._ext import runtime

_NAME = Path(_ext.__file__).parent / "lib" / runtime.level()
LIBRARY = ctypes.CDLL(str(next(_NAME.glob("libdtconv.*"))))
I64 = ctypes.c_int64
PREFIX = {"float32": "dtconv_s", "float64": "dtconv_d"}
REAL = {"float32": ctypes.c_float, "float64": ctypes.c_double}


def epilogue_type(dtype):
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, I64, I64, I64, I64, ctypes.POINTER(REAL[dtype]), I64)


class Matrix(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("rs", I64), ("cs", I64)]


def arguments_type(dtype):
    class Arguments(ctypes.Structure):
        _fields_ = [
            ("m", I64),
            ("n", I64),
            ("k", I64),
            ("pack_a", ctypes.c_void_p),
            ("a", ctypes.c_void_p),
            ("pack_b", ctypes.c_void_p),
            ("b", ctypes.c_void_p),
            ("c", ctypes.c_void_p),
            ("ldc", I64),
            ("beta", REAL[dtype]),
            ("epilogue", ctypes.c_void_p),
            ("e", ctypes.c_void_p),
            ("a_in_place", ctypes.c_void_p),
            ("threads", ctypes.c_int),
        ]

    return Arguments


def matrix(x):
    return Matrix(x.ctypes.data, x.strides[0] // x.itemsize, x.strides[1] // x.itemsize)


def gemm(a, b, c, beta=0, epilogue=None, in_place=False, workspace=None):
    """c = beta * c + a @ b in C; `epilogue(i, m, j, n, block)` gets each finished block; returns the status."""
    dtype = a.dtype.name
    function = getattr(LIBRARY, PREFIX[dtype] + "gemm")
    size = getattr(LIBRARY, PREFIX[dtype] + "gemm_workspace")
    size.restype, size.argtypes = ctypes.c_size_t, [I64] * 3
    (m, k), n = a.shape, b.shape[1]
    packers = [ctypes.cast(getattr(LIBRARY, f"{PREFIX[dtype]}pack_{x}_matrix"), ctypes.c_void_p) for x in "ab"]
    ma, mb = matrix(a), matrix(b)

    @epilogue_type(dtype)
    def finished(_, i, rows, j, columns, start, ldc):
        block = np.ctypeslib.as_array(start, ((rows - 1) * ldc + columns,))
        shape, strides = (rows, columns), (ldc * c.itemsize, c.itemsize)
        epilogue(i, rows, j, columns, np.lib.stride_tricks.as_strided(block, shape, strides))

    arguments = arguments_type(dtype)(
        m,
        n,
        k,
        None if in_place else packers[0],
        None if in_place else ctypes.addressof(ma),
        packers[1],
        ctypes.addressof(mb),
        c.ctypes.data,
        c.strides[0] // c.itemsize,
        beta,
        ctypes.cast(finished, ctypes.c_void_p) if epilogue else None,
        None,
        ctypes.addressof(ma) if in_place else None,
        0,
    )
    nbytes = size(m, n, k) if workspace is None else workspace
    space = np.empty(max(nbytes, 1), np.uint8)
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return function(ctypes.byref(arguments), space.ctypes.data, nbytes)
