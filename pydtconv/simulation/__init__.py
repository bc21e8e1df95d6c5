"""Data-parallel training on machines that are not there: scaling predicted from the timings of one rank.

Nothing here needs MPI.  `predict` puts a profile's step, a network and an all-reduce together; `Network.parse` reads
"100Gbps:1.5us".  What it leaves out: other users of the network, reading of data.
"""

from pydtconv.simulation.collectives import ALGORITHMS, allreduce
from pydtconv.simulation.scaling import Prediction, predict, strong_scaling, weak_scaling
from pydtconv.simulation.spread import Spread, slowest
from pydtconv.simulation.workload import Workload
from pydtconv.support.network import Network

__all__ = [
    "ALGORITHMS",
    "Network",
    "Prediction",
    "Spread",
    "Workload",
    "allreduce",
    "predict",
    "slowest",
    "strong_scaling",
    "weak_scaling",
]
