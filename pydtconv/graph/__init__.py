"""From symbolic tensors to a plan that runs.

ir: tensors and nodes.  passes: what is done to them, such as fusion and the choice of algorithms.  schedule: which
steps run, in which order.  memory: where tensors and parameters lie.  compiler: runs all of these.
plan: the result, with its predicted memory.  runtime: runs it.
"""

from pydtconv.graph.compiler import build_plan
from pydtconv.graph.ir.graph import Graph, Node, Tensor, current_graph
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.passes.split import Split
from pydtconv.graph.plan import MemoryLimitError, Plan
from pydtconv.graph.runtime import disk_speed
from pydtconv.graph.runtime.executor import Executor, run_once
from pydtconv.graph.runtime.hooks import Hooks
from pydtconv.graph.runtime.memory import Memory
from pydtconv.graph.runtime.rows import Rows
from pydtconv.graph.runtime.scratch_file import TransferError
from pydtconv.graph.runtime.traced_loop import is_unrolled, traced_loop, unrolled
from pydtconv.graph.schedule import measured_times
from pydtconv.graph.schedule.convolution_passes import passes_of
from pydtconv.graph.schedule.offload_search import Offload
from pydtconv.graph.schedule.steps import Updates
from pydtconv.graph.schedule.transfers import Disk

__all__ = [
    "Disk",
    "Executor",
    "Graph",
    "Hooks",
    "Memory",
    "MemoryLimitError",
    "Node",
    "Offload",
    "ParameterStore",
    "Plan",
    "Rows",
    "Split",
    "Tensor",
    "TransferError",
    "Updates",
    "Variable",
    "build_plan",
    "current_graph",
    "disk_speed",
    "is_unrolled",
    "measured_times",
    "passes_of",
    "run_once",
    "traced_loop",
    "unrolled",
]
