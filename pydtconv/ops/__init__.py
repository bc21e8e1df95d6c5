# ruff: noqa: F401, F403
"""Operators and, under the names of `keras.ops`, functions that apply them."""

from pydtconv.ops.activation import FROM_OUTPUT, FUSABLE, Activation, Bias
from pydtconv.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Power, Subtract
from pydtconv.ops.base import Op, Retained, Spec, Window, compute
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.convolution_transpose import ConvTranspose
from pydtconv.ops.cross_entropy import CrossEntropy, SigmoidCrossEntropy, SoftmaxCrossEntropy
from pydtconv.ops.custom import NumpyOp
from pydtconv.ops.elementwise_loss import ElementwiseLoss
from pydtconv.ops.layer_normalization import LayerNorm
from pydtconv.ops.linear import Dense, MatMul
from pydtconv.ops.loss_sums import L1L2Penalty, Portion, WeightedMean, WeightedSum
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.pooling import AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool
from pydtconv.ops.random import Dropout, GaussianNoise, RandomCrop, RandomFlip
from pydtconv.ops.reduction import ArgMax, Max, Mean, Min, Sum
from pydtconv.ops.resize import Crop, Pad, Upsample
from pydtconv.ops.shape import Cast, Concatenate, Reshape, Slice, Transpose
from pydtconv.ops.softmax import LogSoftmax, Softmax

# functions after the operators: `linear` and `softmax` are files too, and the functions are what is meant
# isort: split
from pydtconv.ops.functions.activation import *
from pydtconv.ops.functions.arithmetic import *
from pydtconv.ops.functions.convolution import *
from pydtconv.ops.functions.linear import *
from pydtconv.ops.functions.losses import *
from pydtconv.ops.functions.normalization import *
from pydtconv.ops.functions.pooling import *
from pydtconv.ops.functions.reduction import *
from pydtconv.ops.functions.shape import *
from pydtconv.ops.functions.softmax import *
