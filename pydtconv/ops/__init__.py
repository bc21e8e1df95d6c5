# ruff: noqa: F401
"""Operators and, under the names of `keras.ops`, functions that apply them."""

from pydtconv.ops.activation import FROM_OUTPUT, FUSABLE, Activation, Bias
from pydtconv.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Power, Subtract
from pydtconv.ops.base import Op, Pass, Retained, RunState, Spec, compute
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.convolution_functions import conv, conv_transpose, depthwise_conv
from pydtconv.ops.convolution_transpose import ConvTranspose
from pydtconv.ops.custom import NumpyOp
from pydtconv.ops.functions import *  # noqa: F403
from pydtconv.ops.layer_normalization import LayerNorm
from pydtconv.ops.linear import Dense, MatMul
from pydtconv.ops.loss_sums import L1L2Penalty, WeightedMean, WeightedSum
from pydtconv.ops.losses import CrossEntropy, ElementwiseLoss, SigmoidCrossEntropy, SoftmaxCrossEntropy
from pydtconv.ops.nn_functions import (
    average_pool,
    batch_normalization,
    categorical_crossentropy,
    layer_normalization,
    log_softmax,
    max_pool,
    softmax,
    sparse_categorical_crossentropy,
)
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.pooling import AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool
from pydtconv.ops.random import Dropout, GaussianNoise, RandomCrop, RandomFlip
from pydtconv.ops.reduction import ArgMax, Max, Mean, Min, Sum
from pydtconv.ops.shape import Cast, Concatenate, Crop, Pad, Reshape, Slice, Transpose, Upsample
from pydtconv.ops.softmax import LogSoftmax, Softmax
