# ruff: noqa: F401
"""Operators and, under the names of `keras.ops`, functions that apply them."""

from pydtconv.ops.activation import FROM_OUTPUT, FUSABLE, Activation, Bias
from pydtconv.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Power, Subtract
from pydtconv.ops.base import Op, Pass, Retained, RunState, Spec, compute
from pydtconv.ops.functions import *  # noqa: F403
