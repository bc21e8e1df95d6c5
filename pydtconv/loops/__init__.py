"""Loops that a user writes: `GradientTape`, `train_step`, functions that are traced once and run from plans.

`Recording` is the graph that Python code leaves behind: operators, and what else happens to variables and metrics.  It
is cut into stages where variables change; a stage is planned as the steps of `fit` are.  `Program` is a recording that
runs again on other data; without one a recording runs as soon as a value is asked for.
"""

from pydtconv.loops.function import Function as Function
from pydtconv.loops.function import function as function
from pydtconv.loops.recording import Recording as Recording
from pydtconv.loops.recording import ValueNeededError as ValueNeededError
from pydtconv.loops.tape import GradientTape as GradientTape

__all__ = ["Function", "GradientTape", "ValueNeededError", "function"]
