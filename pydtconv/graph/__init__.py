"""From symbolic tensors to a plan that runs.

graph: tensors and nodes.  rewrite: fusion.  layout, gradients, storage: where tensors lie.  schedule, backward,
recompute: which steps run, in which order.  plan: the result, with its predicted memory.  executor: runs it.
store: parameters, gradients and slots in flat arrays.
"""

from pydtconv.graph.convolutions import passes_of
from pydtconv.graph.executor import Executor, Hooks, Memory, run_once
from pydtconv.graph.graph import Graph, Node, Tensor, current_graph
from pydtconv.graph.plan import MemoryLimitError, Plan, build_plan
from pydtconv.graph.steps import Updates
from pydtconv.graph.store import ParameterStore
from pydtconv.graph.variable import Variable

__all__ = [
    "Executor",
    "Graph",
    "Hooks",
    "Memory",
    "MemoryLimitError",
    "Node",
    "ParameterStore",
    "Plan",
    "Tensor",
    "Updates",
    "Variable",
    "build_plan",
    "current_graph",
    "passes_of",
    "run_once",
]
