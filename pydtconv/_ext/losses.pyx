"""Bindings of softmax, losses and what they are summed with (cext/include/dtconv_nn_losses.h)."""

from cython cimport floating
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport ld, vector
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    ctypedef enum dtconv_status:
        DTCONV_ARGUMENT
    ctypedef struct dtconv_targets:
        const void *t
        double smoothing
        const void *labels
        int label_type
        int use_ignore
        int64_t ignore

    int dtconv_softmax_forward(...)
    int dtconv_softmax_backward(...)

    int dtconv_cross_entropy_forward(...)
    int dtconv_cross_entropy_backward(...)

    int dtconv_elementwise_loss_forward(...)
    int dtconv_elementwise_loss_backward(...)
    const char *dtconv_loss_kind(int code)

    int dtconv_weighted_mean_forward(...)
    int dtconv_weighted_mean_backward(...)
    int dtconv_l1_l2_forward(...)
    int dtconv_l1_l2_backward(...)


class LabelError(ValueError):
    """A label that is not one of the classes."""


cdef int check_labels(int status) except -1 nogil:
    if status == DTCONV_ARGUMENT:
        with gil:
            raise LabelError("a label is outside the classes")
    return check(status)


# ---- softmax: x is (outer * k * inner / columns, columns) with columns = k where inner is 1 ----

def kinds() -> list:
    """The kinds of losses of elements, in the order of their codes (cext/cuda/elementwise_losses.h)."""
    found = []
    while dtconv_loss_kind(len(found)) != NULL:
        found.append(dtconv_loss_kind(len(found)).decode())
    return found


def softmax_forward(int64_t outer, int64_t k, int64_t inner, bint logarithm, const floating[:, :] x, floating[:, :] y):
    with nogil:
        check(dtconv_softmax_forward(outer, k, inner, logarithm, &x[0, 0], ld(x), &y[0, 0], ld(y)))


def softmax_backward(int64_t outer, int64_t k, int64_t inner, bint logarithm, const floating[:, :] y,
                     const floating[:, :] dy, bint accumulate, floating[:, :] dx):
    with nogil:
        check(dtconv_softmax_backward(outer, k, inner, logarithm, &y[0, 0], ld(y), &dy[0, 0], ld(dy), accumulate,
                                       &dx[0, 0], ld(dx)))


# ---- losses ----

cdef class Targets:
    """True classes: the address of distributions, or of labels of type 0 int32, 1 int64, 2 float32, 3 float64.

    array is kept alive; its memory is read whenever a loss runs.
    """

    cdef dtconv_targets a
    cdef readonly object array

    def __init__(self, array, const unsigned char[::1] data, bint sparse, int label_type, double smoothing, ignore):
        self.array = array
        self.a.t = NULL
        self.a.labels = NULL
        if sparse:
            self.a.labels = &data[0]
        else:
            self.a.t = &data[0]
        self.a.smoothing = smoothing
        self.a.label_type = label_type
        self.a.use_ignore = ignore is not None
        self.a.ignore = 0 if ignore is None else ignore


def cross_entropy_forward(int64_t outer, int64_t k, int64_t inner, int prediction, double epsilon,
                          const floating[::1] x, Targets targets, floating[::1] p, floating[::1] loss):
    with nogil:
        check_labels(dtconv_cross_entropy_forward(outer, k, inner, prediction, epsilon, &x[0], &targets.a,
                                                   vector(p), &loss[0]))


def cross_entropy_backward(int64_t outer, int64_t k, int64_t inner, int prediction, double epsilon,
                           const floating[::1] x, Targets targets, const floating[::1] dloss, const floating[::1] dp,
                           bint accumulate, floating[::1] dx):
    with nogil:
        check_labels(dtconv_cross_entropy_backward(outer, k, inner, prediction, epsilon, &x[0], &targets.a,
                                                    vector(dloss), vector(dp), accumulate, &dx[0]))


def weighted_mean_forward(int64_t inner, int reduction, const floating[::1] values, const floating[::1] weights,
                          floating[::1] result):
    with nogil:
        check(dtconv_weighted_mean_forward(values.shape[0], inner, reduction, &values[0], vector(weights),
                                            &result[0]))


def weighted_mean_backward(int64_t inner, int reduction, const floating[::1] dresult, const floating[::1] weights,
                           bint accumulate, floating[::1] dvalues):
    with nogil:
        check(dtconv_weighted_mean_backward(dvalues.shape[0], inner, reduction, vector(weights), &dresult[0],
                                             accumulate, &dvalues[0]))


def l1_l2_forward(double l1, double l2, const floating[::1] w, floating[::1] result):
    with nogil:
        check(dtconv_l1_l2_forward(w.shape[0], l1, l2, &w[0], &result[0]))


def l1_l2_backward(double l1, double l2, const floating[::1] w, const floating[::1] dresult, bint accumulate,
                   floating[::1] dw):
    with nogil:
        check(dtconv_l1_l2_backward(w.shape[0], l1, l2, &w[0], &dresult[0], accumulate, &dw[0]))


def elementwise_loss_forward(int64_t outer, int64_t k, int64_t inner, int kind, double a, double smoothing,
                             const floating[::1] x, const floating[::1] t, floating[::1] p, floating[::1] loss):
    with nogil:
        check(dtconv_elementwise_loss_forward(outer, k, inner, kind, a, smoothing, &x[0], &t[0], vector(p),
                                               &loss[0]))


def elementwise_loss_backward(int64_t outer, int64_t k, int64_t inner, int kind, double a, double smoothing,
                              const floating[::1] x, const floating[::1] t, const floating[::1] dloss,
                              const floating[::1] dp, bint accumulate, floating[::1] dx):
    with nogil:
        check(dtconv_elementwise_loss_backward(outer, k, inner, kind, a, smoothing, &x[0], &t[0], vector(dloss),
                                                vector(dp), accumulate, &dx[0]))
