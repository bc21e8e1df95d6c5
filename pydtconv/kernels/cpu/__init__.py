"""Kernels of this machine's processor: a file for each file of `ops`, around the compiled extensions.

rows, strided: how arrays are handed to C.  Importing the package registers them all.
"""

from pydtconv.kernels.cpu import (  # noqa: F401
    activation,
    arithmetic,
    attention,
    augment,
    body_loop,
    contraction,
    convolution,
    convolution_transpose,
    cross_entropy,
    custom,
    dense_bfloat16,
    elementwise_loss,
    embedding,
    exchange,
    layer_normalization,
    linear,
    loss_sums,
    moments,
    normalization,
    numpy_functions,
    pooling,
    random,
    recurrence,
    reduction,
    resize,
    separable,
    separable_convolution,
    shape,
    softmax,
)
