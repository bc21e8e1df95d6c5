"""Gradients of `GradientTape` inside another tape's block: those of operators, as operators.

What a rule computes can be differentiated again.  Operators have their own (`Op.gradient`, `Op.formula`); those of
functions of the table are here.  Operators without one are refused by name.
"""

from pydtconv.loops.rules import tables
from pydtconv.loops.rules.pulling import RULES, contribute, pull

__all__ = ["RULES", "contribute", "pull", "tables"]
