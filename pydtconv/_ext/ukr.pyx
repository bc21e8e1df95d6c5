"""The tables of micro-kernels, one for each dtype ("float32", "float64", "bfloat16"); their self-test and speed."""

from libc.stdint cimport int64_t, uintptr_t

from pydtconv._ext.arrays cimport element, reals
from pydtconv._ext.dtypes cimport DTCONV_BFLOAT16, DTCONV_FLOAT32, DTCONV_FLOAT64, dtconv_dtype, dtype_of

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_ukr_info:
        const char *name
        int mr, nr
        unsigned features
        int rank, in_place, foreign
    int dtconv_ukr_describe(dtconv_dtype, int index, dtconv_ukr_info *)
    void dtconv_ukr_sizes(dtconv_dtype, int index, int64_t *)
    int dtconv_ukr_register(dtconv_dtype, const char *, void *, int, int, int, int, unsigned, int)
    int dtconv_ukr_register_system(dtconv_dtype, int rank)
    void dtconv_ukr_select_index(dtconv_dtype, int index)
    int dtconv_ukr_active_index(dtconv_dtype)
    void dtconv_ukr_set_chooser(dtconv_dtype, int (*chooser)() noexcept nogil)
    double dtconv_ukr_self_test(dtconv_dtype, int index)
    double dtconv_ukr_peak(dtconv_dtype, unsigned features, int64_t repeats)
    void dtconv_ukr_repeat_index(...)

_chooser = None
_failures = {}


cdef int choose(str dtype) noexcept with gil:
    try:
        _chooser(dtype)
        _failures.pop(dtype, None)
        return 0
    except Exception as error:  # kept until the status of the C function is looked at: see check
        _failures[dtype] = error
        return 1


cdef int choose_float32() noexcept nogil:
    with gil:
        return choose("float32")


cdef int choose_float64() noexcept nogil:
    with gil:
        return choose("float64")


cdef int choose_bfloat16() noexcept nogil:
    with gil:
        return choose("bfloat16")


def set_chooser(chooser) -> None:
    """`chooser(dtype)` is called when a kernel is wanted and none is active: it selects one or raises."""
    global _chooser
    _chooser = chooser
    dtconv_ukr_set_chooser(DTCONV_FLOAT32, choose_float32)
    dtconv_ukr_set_chooser(DTCONV_FLOAT64, choose_float64)
    dtconv_ukr_set_chooser(DTCONV_BFLOAT16, choose_bfloat16)


def check(int status, where: str) -> None:
    """Raises what a status of the C library stands for; `where` names the function in the message."""
    if status == 0:
        return
    if status == 4 and _failures:
        raise next(iter(_failures.values()))
    meaning = {1: "this problem is not supported", 2: "the workspace is too small",
               3: "sizes or strides contradict each other", 4: "no micro-kernel could be chosen"}
    raise RuntimeError(f"{where}: {meaning.get(status, f'status {status}')}")


def table(str dtype) -> list:
    """(name, mr, nr, feature bits, rank, reads A in place, is of another library) of each kernel, in their order."""
    cdef dtconv_ukr_info row
    cdef dtconv_dtype code = dtype_of(dtype)
    rows = []
    while dtconv_ukr_describe(code, len(rows), &row):
        rows.append((row.name.decode(), row.mr, row.nr, row.features, row.rank, bool(row.in_place), bool(row.foreign)))
    return rows


def register(str dtype, str name, uintptr_t address, int abi, int mr, int nr, bint row_preferred, unsigned features,
             int rank) -> int:
    """Adds a kernel of another library, with sizes in its own words; its index, or -1 where it does not fit."""
    return dtconv_ukr_register(dtype_of(dtype), name.encode(), <void *>address, abi, mr, nr, row_preferred, features,
                               rank)


def register_system(str dtype, int rank) -> int:
    """Adds the kernel of the BLIS that the library was built against; -1 where it was built without one."""
    return dtconv_ukr_register_system(dtype_of(dtype), rank)


def select(str dtype, int index) -> None:
    """Makes a kernel active; -1: none, so that the chooser is asked again."""
    dtconv_ukr_select_index(dtype_of(dtype), index)


def current(str dtype) -> int:
    """Index of the active kernel, or -1 where none has been chosen yet."""
    return dtconv_ukr_active_index(dtype_of(dtype))


def self_test(str dtype, int index) -> float:
    """Largest error against the portable kernel in units of the tolerance; below 1 is right."""
    return dtconv_ukr_self_test(dtype_of(dtype), index)


def sizes(str dtype, int index) -> tuple:
    """(MC, KC, NC) of a large problem with this kernel."""
    cdef int64_t[3] blocks
    dtconv_ukr_sizes(dtype_of(dtype), index, blocks)
    return blocks[0], blocks[1], blocks[2]


def repeat(int index, int64_t repeats, int64_t k, const element[::1] a, const element[::1] b, c) -> None:
    """Runs a kernel on the same panels again and again; c: numbers of their arithmetic, float32 for bfloat16."""
    cdef void *sums = reals(&a[0], c)
    with nogil:
        dtconv_ukr_repeat_index(index, repeats, k, &a[0], &b[0], sums)


def peak(str dtype, unsigned features, int64_t repeats) -> float:
    """Runs multiply-adds in registers; the number of floating-point operations."""
    cdef double done
    cdef dtconv_dtype code = dtype_of(dtype)
    with nogil:
        done = dtconv_ukr_peak(code, features, repeats)
    return done
