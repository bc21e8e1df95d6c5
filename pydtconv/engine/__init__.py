"""What runs a step, whoever has written it: `fit`'s graphs, a custom `train_step`, a loop with a tape.

workspace.py   the memory in which the plans of one model run, who runs there now, and the optimizer's step
bound.py       a plan in that memory, bound anew where others have moved its variables
planning.py    the plan of a graph within limits
limits.py      bytes and a folder that a step may take
offloading.py  where tensors are written to between forward and backward
first_use.py   tuning of convolutions before the first step
sharing.py     what a step asks of the processes that have other shares of its batch
"""

from pydtconv.engine.bound import Bound as Bound
from pydtconv.engine.workspace import Workspace as Workspace
