# ruff: noqa: F401, F403
"""Operators and, under the names of `keras.ops`, functions that apply them."""

from pydtconv.ops.activation import *
from pydtconv.ops.arithmetic import *
from pydtconv.ops.attention import *
from pydtconv.ops.base import *
from pydtconv.ops.base import functions as _functions
from pydtconv.ops.contraction import *
from pydtconv.ops.convolution import *
from pydtconv.ops.convolution_transpose import *
from pydtconv.ops.cross_entropy import *
from pydtconv.ops.custom import *
from pydtconv.ops.elementwise_loss import *
from pydtconv.ops.embedding import *
from pydtconv.ops.exchange import *
from pydtconv.ops.kinds import *
from pydtconv.ops.layer_normalization import *
from pydtconv.ops.linear import *
from pydtconv.ops.loss_sums import *
from pydtconv.ops.normalization import *
from pydtconv.ops.pooling import *
from pydtconv.ops.random import *
from pydtconv.ops.recurrence import *
from pydtconv.ops.reduction import *
from pydtconv.ops.resize import *
from pydtconv.ops.separable import *
from pydtconv.ops.shape import *
from pydtconv.ops.softmax import *

# functions after the operators: `linear` and `softmax` are files too, and the functions are what is meant
# isort: split
from pydtconv.ops import augment_moves as _augment_moves
from pydtconv.ops import augment_policies as _augment_policies
from pydtconv.ops.augment import *
from pydtconv.ops.functions.activation import *
from pydtconv.ops.functions.activation import linear as linear
from pydtconv.ops.functions.arithmetic import *
from pydtconv.ops.functions.attention import *
from pydtconv.ops.functions.convolution import *
from pydtconv.ops.functions.custom_gradient import *
from pydtconv.ops.functions.einsum import *
from pydtconv.ops.functions.forward_mode import *
from pydtconv.ops.functions.linear import *
from pydtconv.ops.functions.losses import *
from pydtconv.ops.functions.normalization import *
from pydtconv.ops.functions.pooling import *
from pydtconv.ops.functions.reduction import *
from pydtconv.ops.functions.result_types import of_all_dtypes as _of_all_dtypes
from pydtconv.ops.functions.shape import *
from pydtconv.ops.functions.softmax import *
from pydtconv.ops.functions.softmax import softmax as softmax
from pydtconv.ops.functions.tables.composed_products import *
from pydtconv.ops.functions.tables.composed_reductions import *
from pydtconv.ops.functions.tables.composed_shapes import *
from pydtconv.ops.functions.tables.control import *
from pydtconv.ops.functions.tables.counting import *
from pydtconv.ops.functions.tables.creating import *
from pydtconv.ops.functions.tables.elementwise import *
from pydtconv.ops.functions.tables.fourier import *
from pydtconv.ops.functions.tables.linalg import *
from pydtconv.ops.functions.tables.rearranging import *
from pydtconv.ops.functions.tables.reducing import *
from pydtconv.ops.functions.tables.selecting import *
from pydtconv.ops.functions.tables.sequences import *
from pydtconv.ops.operations import operations_of as _operations_of
from pydtconv.ops.table_op import *
from pydtconv.suggest import refusal as _refusal

# after all files of functions, which say where Keras has them
# isort: split
from pydtconv.ops import image as image
from pydtconv.ops import linalg as linalg
from pydtconv.ops import nn as nn
from pydtconv.ops import numpy as numpy

globals().update(_of_all_dtypes(globals()))

globals().update(_operations_of(globals()))
vars(_functions).update(globals())

__getattr__ = _refusal(__name__, [name for name in globals() if not name.startswith("_")])
