"""The table of micro-kernels, their self-test and speed.  `double_precision` says which of the two tables is meant."""
from libc.stdint cimport int64_t, uintptr_t

cdef extern from "dtconv_both.h" nogil:
    ctypedef struct dtconv_sukr_row:
        const char *name
        int mr
        int nr
        unsigned features
        int rank
        int in_place
        void *foreign
    ctypedef struct dtconv_dukr_row:
        const char *name
        int mr
        int nr
        unsigned features
        int rank
        int in_place
        void *foreign
    ctypedef struct dtconv_sgemm_sizes:
        int64_t mc
        int64_t kc
        int64_t nc
    ctypedef struct dtconv_dgemm_sizes:
        int64_t mc
        int64_t kc
        int64_t nc
    const dtconv_sukr_row *dtconv_sukr_get(int index)
    const dtconv_dukr_row *dtconv_dukr_get(int index)
    int dtconv_sukr_register(const char *, void *, int, int, int, int, unsigned, int)
    int dtconv_dukr_register(const char *, void *, int, int, int, int, unsigned, int)
    int dtconv_sukr_register_system(int rank)
    int dtconv_dukr_register_system(int rank)
    void dtconv_sukr_select(const dtconv_sukr_row *)
    void dtconv_dukr_select(const dtconv_dukr_row *)
    void dtconv_sukr_set_chooser(int (*chooser)() noexcept nogil)
    void dtconv_dukr_set_chooser(int (*chooser)() noexcept nogil)
    const dtconv_sukr_row *dtconv_sukr_in_force()
    const dtconv_dukr_row *dtconv_dukr_in_force()
    double dtconv_sukr_check(const dtconv_sukr_row *)
    double dtconv_dukr_check(const dtconv_dukr_row *)
    void dtconv_sukr_repeat(const dtconv_sukr_row *, int64_t, int64_t, const float *, const float *, float *)
    void dtconv_dukr_repeat(const dtconv_dukr_row *, int64_t, int64_t, const double *, const double *, double *)
    double dtconv_sukr_peak(unsigned features, int64_t repeats)
    double dtconv_dukr_peak(unsigned features, int64_t repeats)
    dtconv_sgemm_sizes dtconv_sgemm_sizes_of(const dtconv_sukr_row *)
    dtconv_dgemm_sizes dtconv_dgemm_sizes_of(const dtconv_dukr_row *)

_chooser = None
_failures = {}


cdef int choose(bint double_precision) noexcept with gil:
    try:
        _chooser(double_precision)
        _failures.pop(double_precision, None)
        return 0
    except Exception as error:  # kept until the status of the C function is looked at: see check
        _failures[double_precision] = error
        return 1


cdef int choose_s() noexcept nogil:
    return choose(False)


cdef int choose_d() noexcept nogil:
    return choose(True)


def set_chooser(chooser) -> None:
    """`chooser(double_precision)` is called when a kernel is wanted and none is in force: it selects one or raises."""
    global _chooser
    _chooser = chooser
    dtconv_sukr_set_chooser(choose_s)
    dtconv_dukr_set_chooser(choose_d)


def check(int status, where: str) -> None:
    """Raises what a status of the C library stands for; `where` names the function in the message."""
    if status == 0:
        return
    if status == 4 and _failures:
        raise next(iter(_failures.values()))
    meaning = {1: "this problem is not supported", 2: "the workspace is too small",
               3: "sizes or strides contradict each other", 4: "no micro-kernel could be chosen"}
    raise RuntimeError(f"{where}: {meaning.get(status, f'status {status}')}")


def table(bint double_precision) -> list:
    """(name, mr, nr, feature bits, rank, reads A in place, is of another library) of each kernel, in their order."""
    cdef const dtconv_sukr_row *s
    cdef const dtconv_dukr_row *d
    rows = []
    while True:
        if double_precision:
            d = dtconv_dukr_get(len(rows))
            if d is NULL:
                return rows
            rows.append((d.name.decode(), d.mr, d.nr, d.features, d.rank, bool(d.in_place), d.foreign is not NULL))
        else:
            s = dtconv_sukr_get(len(rows))
            if s is NULL:
                return rows
            rows.append((s.name.decode(), s.mr, s.nr, s.features, s.rank, bool(s.in_place), s.foreign is not NULL))


def register(bint double_precision, str name, uintptr_t address, int abi, int mr, int nr, bint row_preferred,
             unsigned features, int rank) -> int:
    """Adds a kernel of another library, with sizes in its own words; its index, or -1 where it does not fit."""
    text = name.encode()
    if double_precision:
        return dtconv_dukr_register(text, <void *>address, abi, mr, nr, row_preferred, features, rank)
    return dtconv_sukr_register(text, <void *>address, abi, mr, nr, row_preferred, features, rank)


def register_system(bint double_precision, int rank) -> int:
    """Adds the kernel of the BLIS that the library was built against; -1 where it was built without one."""
    return dtconv_dukr_register_system(rank) if double_precision else dtconv_sukr_register_system(rank)


def select(bint double_precision, int index) -> None:
    """Puts a kernel in force; -1: none, so that the chooser is asked again."""
    if double_precision:
        dtconv_dukr_select(dtconv_dukr_get(index) if index >= 0 else NULL)
    else:
        dtconv_sukr_select(dtconv_sukr_get(index) if index >= 0 else NULL)


def current(bint double_precision) -> int:
    """Index of the kernel in force, or -1 where none has been chosen yet."""
    cdef int index = 0
    if double_precision:
        while dtconv_dukr_get(index) is not NULL:
            if dtconv_dukr_get(index) is dtconv_dukr_in_force():
                return index
            index += 1
        return -1
    while dtconv_sukr_get(index) is not NULL:
        if dtconv_sukr_get(index) is dtconv_sukr_in_force():
            return index
        index += 1
    return -1


def self_test(bint double_precision, int index) -> float:
    """Largest error against the portable kernel in units of the tolerance; below 1 is right."""
    return dtconv_dukr_check(dtconv_dukr_get(index)) if double_precision else dtconv_sukr_check(dtconv_sukr_get(index))


def sizes(bint double_precision, int index) -> tuple:
    """(MC, KC, NC) of a large problem with this kernel."""
    cdef dtconv_sgemm_sizes s
    cdef dtconv_dgemm_sizes d
    if double_precision:
        d = dtconv_dgemm_sizes_of(dtconv_dukr_get(index))
        return d.mc, d.kc, d.nc
    s = dtconv_sgemm_sizes_of(dtconv_sukr_get(index))
    return s.mc, s.kc, s.nc


def repeat_s(int index, int64_t repeats, int64_t k, const float[::1] a, const float[::1] b, float[::1] c) -> None:
    """Runs a float32 kernel on the same panels again and again."""
    cdef const dtconv_sukr_row *row = dtconv_sukr_get(index)
    with nogil:
        dtconv_sukr_repeat(row, repeats, k, &a[0], &b[0], &c[0])


def repeat_d(int index, int64_t repeats, int64_t k, const double[::1] a, const double[::1] b, double[::1] c) -> None:
    """Runs a float64 kernel on the same panels again and again."""
    cdef const dtconv_dukr_row *row = dtconv_dukr_get(index)
    with nogil:
        dtconv_dukr_repeat(row, repeats, k, &a[0], &b[0], &c[0])


def peak(bint double_precision, unsigned features, int64_t repeats) -> float:
    """Runs multiply-adds in registers; the number of floating-point operations."""
    cdef double done
    with nogil:
        done = dtconv_dukr_peak(features, repeats) if double_precision else dtconv_sukr_peak(features, repeats)
    return done
