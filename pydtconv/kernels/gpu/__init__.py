"""Kernels of GPUs: a file for each file of `ops`, around the kernels of cext/cuda; `p.launcher` starts them.

The device "host" runs them too.  Importing the package registers them all; it needs no GPU and no CuPy.
"""

from pydtconv.kernels.gpu import (  # noqa: F401
    activation,
    arithmetic,
    attention,
    contraction,
    convolution,
    cross_entropy,
    elementwise_loss,
    embedding,
    layer_normalization,
    linear,
    loss_sums,
    moments,
    normalization,
    pooling,
    random,
    reduction,
    resize,
    separable,
    shape,
    softmax,
    table,
)
