"""What an all-reduce costs: n bytes over p ranks, with the network's alpha, beta, gamma.

R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH" (International
Journal of High Performance Computing Applications 19(1), 2005); lg is the logarithm to base 2.

- recursive_doubling (section 4.5): all n bytes are exchanged in each of lg p rounds,
  T = lg p alpha + n lg p beta + n lg p gamma
- rabenseifner (section 4.5): reduce-scatter by recursive halving, all-gather by recursive doubling,
  T = 2 lg p alpha + 2 n (p - 1)/p beta + n (p - 1)/p gamma
- ring: reduce-scatter and all-gather (section 4.1) each in p - 1 rounds of n/p bytes around a ring,
  T = 2 (p - 1) alpha + 2 n (p - 1)/p beta + n (p - 1)/p gamma
- best: the cheapest of the three.

Where hosts have k ranks each, p counts hosts: the ranks of a host first add what they have in shared memory, each a
part, in n (k - 1)/k gamma, and share their host's link.

Where p is no power of two, the first two put the ranks above the largest power of two below p into partners first and
send them the result at the end: 2 alpha + 2 n beta + n gamma on top of the cost for that power.
"""

from __future__ import annotations

from collections.abc import Callable

from pydtconv.support.network import Network

Cost = Callable[[float, int, Network], float]


def recursive_doubling(nbytes: float, ranks: int, network: Network) -> float:
    rounds, extra = _folded(nbytes, ranks, network)
    return extra + rounds * (network.alpha + nbytes * (network.beta + network.gamma))


def rabenseifner(nbytes: float, ranks: int, network: Network) -> float:
    rounds, extra = _folded(nbytes, ranks, network)
    moved = nbytes * (1 - 0.5**rounds)
    return extra + 2 * rounds * network.alpha + moved * (2 * network.beta + network.gamma)


def ring(nbytes: float, ranks: int, network: Network) -> float:
    moved = nbytes * (ranks - 1) / ranks
    return 2 * (ranks - 1) * network.alpha + moved * (2 * network.beta + network.gamma)


def best(nbytes: float, ranks: int, network: Network) -> float:
    return _best(nbytes, ranks, network)(nbytes, ranks, network)


def _best(nbytes: float, ranks: int, network: Network) -> Cost:
    return min((ring, recursive_doubling, rabenseifner), key=lambda cost: cost(nbytes, ranks, network))


ALGORITHMS: dict[str, Cost] = {
    "best": best,
    "ring": ring,
    "recursive_doubling": recursive_doubling,
    "rabenseifner": rabenseifner,
}


def allreduce(nbytes: float, ranks: int, network: Network, algorithm: str = "best") -> float:
    """Seconds of an all-reduce; none on one rank.  Raises ValueError for an unknown algorithm or no rank."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm: expected one of {', '.join(ALGORITHMS)}, got {algorithm!r}")
    if ranks < 1:
        raise ValueError(f"ranks: expected 1 or more, got {ranks}")
    hosts, each = _hosts(ranks, network)
    within = nbytes * (each - 1) / each * network.gamma
    return within + (ALGORITHMS[algorithm](nbytes, hosts, network) if hosts > 1 else 0.0)


#: seconds that a normalization's statistics take in Python, in forward and backward together, of 16 to 512 channels
SUMMING = 5e-5


def normalization(channels: int, ranks: int, network: Network) -> float:
    """Seconds in which all ranks sum the statistics of a batch normalization, and their gradients; none on one."""
    return 2 * allreduce(8.0 * (2 * channels + 1), ranks, network) + SUMMING if ranks > 1 else 0.0


def work_of_cores(nbytes: float, ranks: int, network: Network, algorithm: str = "best") -> float:
    """Seconds of a rank's cores that sending and receiving take in an all-reduce."""
    hosts, each = _hosts(ranks, network)
    cost = _best(nbytes, hosts, network) if algorithm == "best" else ALGORITHMS[algorithm]
    return cost(nbytes, hosts, Network(0.0, network.delta, 0.0)) / each if hosts > 1 else 0.0


def _hosts(ranks: int, network: Network) -> tuple[int, int]:
    """How many, and the ranks of one."""
    each = min(ranks, network.ranks_per_host)
    return -(-ranks // each), each


def _folded(nbytes: float, ranks: int, network: Network) -> tuple[int, float]:
    """Rounds of the largest power of two in p, and the seconds that the ranks above it cost."""
    rounds = ranks.bit_length() - 1
    if ranks == 1 << rounds:
        return rounds, 0.0
    return rounds, 2 * network.alpha + nbytes * (2 * network.beta + network.gamma)
