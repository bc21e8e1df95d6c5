"""Rules of `GradientTape` inside another tape's block: the gradient of an operator, as operators.

What a rule computes can be differentiated again.  Operators without a rule are refused by name.
"""

from pydtconv.loops.rules import elementwise, normalizing, products, sums, tables, windows
from pydtconv.loops.rules.pulling import RULES, contribute, pull

__all__ = [
    "RULES",
    "contribute",
    "elementwise",
    "normalizing",
    "products",
    "pull",
    "sums",
    "tables",
    "windows",
]
